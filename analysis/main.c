/* SPDX-License-Identifier: MIT */
#include "analysis/verb.h"

#if defined(__SANITIZE_ADDRESS__)
/* On some damaged files HDF5 loses memory of its own, which its exit handler would have freed; that
 * handler is off because it crashes on a full disk (h5_file.c). Leaks of this program still show.
 */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5\n";
}
const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}
#endif

int main(int argc, char **argv)
{
    return dp_command(argc, argv);
}
