/* SPDX-License-Identifier: MIT
 *
 * The floating-point environment of work that rounds with the host's FPU: to nearest, neither FTZ
 * nor DAZ, whatever the caller has set. Threads started meanwhile inherit it.
 *
 * The work between enter and leave sits in another function that is not inlined (another file, a
 * pointer, DP_NOINLINE), so that the compiler cannot move it across these calls.
 */
#ifndef DP_FORMATS_ENVIRONMENT_H
#define DP_FORMATS_ENVIRONMENT_H

#include <fenv.h>

#if defined(__GNUC__)
#define DP_NOINLINE __attribute__((noinline))
#else
#define DP_NOINLINE
#endif

/* callers: receives what dp_environment_leave() brings back. */
static inline void dp_environment_enter(fenv_t *callers)
{
    fegetenv(callers);
    fesetenv(FE_DFL_ENV);
}

static inline void dp_environment_leave(const fenv_t *callers)
{
    fesetenv(callers);
}

#endif
