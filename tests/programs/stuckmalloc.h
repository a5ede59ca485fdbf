#define STUCK 77777u
