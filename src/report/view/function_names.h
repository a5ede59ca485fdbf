/* function_names.h - which functions a name on the command line means, and which ones are near if it means none. */
#ifndef HW_REPORT_VIEW_FUNCTION_NAMES_H
#define HW_REPORT_VIEW_FUNCTION_NAMES_H

#include "report/view/view.h"

/* A name means the functions of the first level at which there are any: 0 as shown, or as in the symbol table; 1
 * without the type that is returned and the parameters; 2 the last part alone, behind "::". */
#define HW_NAME_LEVELS 3
bool hw_is_called(const struct hw_frame *symbol, const char *wanted, int level);

/* Sets ERROR: no stack of the view has a function WANTED, and which names are near. */
void hw_say_no_function(const struct hw_view *view, const char *wanted, struct hw_error *error);

#endif
