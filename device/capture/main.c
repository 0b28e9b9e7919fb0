/* SPDX-License-Identifier: MIT
 *
 * directp_capture: the recorder alone, for a machine that has a GPU and nothing else of the
 * project.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/capture/capture.h"

static const char dp_help[] =
    "Usage: directp_capture --out FILE [options]\n"
    "Record what this GPU's instructions return into an HDF5 file (kind = capture).\n\n"
    "  -o, --out FILE     the file to write\n"
    "      --only LIST    parts, comma-separated: sfu, lg2, convert, scalar, mma, block (all)\n"
    "      --device N     CUDA device (0)\n"
    "      --tiles N      matrix tiles a kind of data, 1 to 64 (2)\n"
    "      --level N      gzip level, 1 to 9 (4)\n"
    "      --seed N       seed of the random operands (1)\n"
    "  -q, --quiet        print nothing\n"
    "  -h, --help         this text\n\n"
    "Exit status: 0 recorded, 2 not recorded, 77 no device.\n";

enum { DP_ONLY = 256, DP_DEVICE, DP_TILES, DP_LEVEL, DP_SEED };

static const struct option dp_options[] = {{"out", required_argument, NULL, 'o'},
                                           {"only", required_argument, NULL, DP_ONLY},
                                           {"device", required_argument, NULL, DP_DEVICE},
                                           {"tiles", required_argument, NULL, DP_TILES},
                                           {"level", required_argument, NULL, DP_LEVEL},
                                           {"seed", required_argument, NULL, DP_SEED},
                                           {"quiet", no_argument, NULL, 'q'},
                                           {"help", no_argument, NULL, 'h'},
                                           {NULL, 0, NULL, 0}};

static unsigned long dp_number(const char *name, unsigned long low, unsigned long high)
{
    char *end = NULL;
    unsigned long value = strtoul(optarg, &end, 0);
    if (end == optarg || *end != '\0' || value < low || value > high) {
        (void)fprintf(stderr,
                      "directp_capture: --%s: '%s' is no number from %lu to %lu: correct it\n",
                      name, optarg, low, high);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    dp_capture_record_options options = {.seed = 1};
    const char *path = NULL;
    for (int c = 0; (c = getopt_long(argc, argv, "o:qh", dp_options, NULL)) != -1;) {
        switch (c) {
        case 'o':
            path = optarg;
            break;
        case DP_ONLY:
            options.only = optarg;
            break;
        case DP_DEVICE:
            options.device = (int)dp_number("device", 0, 1024);
            break;
        case DP_TILES:
            options.tiles = (unsigned)dp_number("tiles", 1, 64);
            break;
        case DP_LEVEL:
            options.level = (int)dp_number("level", 1, 9);
            break;
        case DP_SEED:
            options.seed = dp_number("seed", 0, (unsigned long)-1);
            break;
        case 'q':
            options.quiet = true;
            break;
        case 'h':
            (void)fputs(dp_help, stdout);
            return 0;
        default:
            return 2;
        }
    }
    if (path == NULL || optind != argc) {
        (void)fputs("directp_capture: --out: no file given: say where to write (--help)\n", stderr);
        return 2;
    }
    dp_error error = {.text = ""};
    dp_capture_status status = dp_capture_record(path, &options, &error);
    if (status != DP_CAPTURE_DONE) {
        (void)fprintf(stderr, "directp_capture: %s\n", error.text);
    }
    return status == DP_CAPTURE_DONE ? 0 : status == DP_CAPTURE_NO_DEVICE ? 77 : 2;
}
