/* SPDX-License-Identifier: MIT */
#include "analysis/verb.h"

int main(int argc, char **argv)
{
    return dp_command(argc, argv);
}
