/* keeping_module.c - a module with a variable for states.c. */
__attribute__((visibility("default"))) void *kept = &kept;
