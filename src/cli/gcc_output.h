/* gcc_output.h - what heapwise cc --profile-output puts in front of a source that gcc compiles: the pattern of the
 * profile's name, once for all objects of a link. See HW_ABI_OUTPUT. */
#if defined __GNUC__ && !defined __ASSEMBLER__
#pragma GCC system_header
#ifdef __cplusplus
extern "C" {
#endif
extern const char __heapwise_output[];
__attribute__((weak, used, visibility("default"))) const char __heapwise_output[] = HEAPWISE_OUTPUT;
#ifdef __cplusplus
}
#endif
#endif
