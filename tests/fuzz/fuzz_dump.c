/* SPDX-License-Identifier: MIT
 *
 * Fuzzer of `directp diff`: a small dump of the command itself, changed in its structure
 * (attributes, shapes, types, links, data) and in its bytes, then compared. Whatever the file, the
 * command must end by itself with status 0, 1 or 2, and with 2 say so in one line.
 *
 *     fuzz_dump SECONDS [SEED]      run for a time; a file that fails is kept and its name printed
 *     fuzz_dump FILE.h5 OPTIONS...  run one file
 *     fuzz_dump                     the test: 60 files of a fixed seed
 *
 * DIRECTP names the command; one built with sanitizers finds more.
 */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support.h"

enum { MOST_SECONDS = 60, TEXT = 4096, FILE_BYTES = 1 << 23 };

static dp_rng rng;
static char folder[200];

static uint32_t below(uint32_t n)
{
    return dp_rng_below(&rng, n);
}

#define PICK(list) (list)[below((uint32_t)(sizeof(list) / sizeof(list)[0]))]

/* ---- words of the trade -------------------------------------------------------------------------
 */

static const char *const DATASETS[] = {"/inputs/q",
                                       "/inputs/k",
                                       "/inputs/v",
                                       "/inputs/key_order",
                                       "/quantize/q_payload",
                                       "/quantize/q_scale",
                                       "/quantize/k_payload",
                                       "/quantize/k_scale",
                                       "/quantize/v_payload",
                                       "/quantize/v_scale",
                                       "/quantize/q_global",
                                       "/quantize/k_global",
                                       "/score/raw",
                                       "/reference/row_ref",
                                       "/scale/p_scale",
                                       "/code/p_payload",
                                       "/denominator/code_sum",
                                       "/denominator/row_sum",
                                       "/accumulate/acc",
                                       "/output/o",
                                       "/output/lse"};
static const char *const GROUPS[] = {"/inputs",      "/quantize",   "/score",
                                     "/reference",   "/scale",      "/code",
                                     "/denominator", "/accumulate", "/output"};
static const char *const ROOT[] = {"schema",        "kind",  "policy",    "epoch",    "switches",
                                   "policy_fields", "keys",  "queries",   "dim",      "features",
                                   "q_heads",       "heads", "batches",   "kv_of_q",  "causal",
                                   "softmax_scale", "sfu",   "row_first", "key_first"};
static const char *const OF_DATASET[] = {"axes",   "packing",   "format",   "block",
                                         "layout", "row_first", "key_first"};
static const char *const WORDS[] = {"",
                                    "batch,head,query,dim",
                                    "batch,query,head,dim",
                                    "batch,head,query,key",
                                    "key,query,head,batch",
                                    "batch,head,query",
                                    "head,query",
                                    "query,query",
                                    "batch,head,row,block",
                                    "dim,key",
                                    "a,b,c,d",
                                    ",,,",
                                    "byte",
                                    "high-first",
                                    "low-first",
                                    "e2m1",
                                    "ue4m3",
                                    "e8m0",
                                    "bf16",
                                    "f32",
                                    "f16",
                                    "linear",
                                    "atom128x4",
                                    "atom64x4",
                                    "pages-q",
                                    "pages-k",
                                    "pages-k64",
                                    "pages-v",
                                    "pages-duda",
                                    "128x4-swapped",
                                    "fast",
                                    "accurate",
                                    "guard-14b",
                                    "ideal",
                                    "cubic",
                                    "R",
                                    "S",
                                    "exact",
                                    "h200",
                                    "dump",
                                    "tensors",
                                    "shift=8\nmargin=64\n",
                                    "shift=-1",
                                    "shift=999999999999",
                                    "anchor=128\nreference=anchor",
                                    "native-d64=on",
                                    "density=4",
                                    "map=poly\ndegree=9",
                                    "no such = thing",
                                    "key-order=natural",
                                    "mma.zero_group=scale",
                                    "a\0b"};
static const int64_t NUMBERS[] = {
    0,         1,        2,   -1,  3,   7,   16,    31,  32,      64,      96,
    100,       127,      128, 129, 256, 512, 65536, -32, 1 << 20, 1 << 30, (int64_t)1 << 40,
    INT64_MAX, INT64_MIN};
static const hsize_t EXTENTS[] = {0,  1,  1,  1,  2,   3,   4,   8,   16,
                                  31, 32, 64, 64, 100, 128, 128, 129, 256};

/* ---- changes of the structure -------------------------------------------------------------------
 */

static void drop_attribute(hid_t object, const char *name)
{
    if (H5Aexists(object, name) > 0) {
        (void)H5Adelete(object, name);
    }
}

static void attribute_text(hid_t object, const char *name, const char *text)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    const bool variable = below(3) == 0;
    (void)H5Tset_size(type, variable ? H5T_VARIABLE : strlen(text) + 1);
    const hid_t space = H5Screate(below(8) == 0 ? H5S_NULL : H5S_SCALAR);
    const hid_t id = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    (void)H5Awrite(id, type, variable ? (const void *)&text : (const void *)text);
    (void)H5Aclose(id);
    (void)H5Sclose(space);
    (void)H5Tclose(type);
}

static void attribute_numbers(hid_t object, const char *name)
{
    int64_t values[8];
    double real[8];
    const hsize_t count = below(4) == 0 ? below(8) : 1;
    const bool is_real = below(5) == 0;
    for (int i = 0; i < 8; i++) {
        values[i] = below(3) == 0 ? (int64_t)below(300) : PICK(NUMBERS);
        real[i] = below(4) == 0 ? (double)dp_rng_nasty_f32(&rng) : (double)values[i];
    }
    const hid_t types[] = {H5T_STD_I64LE, H5T_STD_I32BE, H5T_STD_U8LE, H5T_STD_I16LE};
    const hid_t stored = is_real ? (below(2) == 0 ? H5T_IEEE_F64LE : H5T_IEEE_F32BE) : PICK(types);
    const hid_t space =
        count == 1 && below(2) == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, NULL);
    const hid_t id = H5Acreate2(object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT);
    (void)H5Awrite(id, is_real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64,
                   is_real ? (const void *)real : (const void *)values);
    (void)H5Aclose(id);
    (void)H5Sclose(space);
}

static void change_attribute(hid_t file)
{
    const bool root = below(2) == 0;
    const hid_t object = H5Oopen(file, root ? "/" : PICK(DATASETS), H5P_DEFAULT);
    const char *name = root ? PICK(ROOT) : PICK(OF_DATASET);
    if (object < 0) {
        return;
    }
    drop_attribute(object, name);
    switch (below(5)) {
    case 0:
        break;
    case 1:
    case 2:
        attribute_text(object, name, PICK(WORDS));
        break;
    default:
        attribute_numbers(object, name);
    }
    (void)H5Oclose(object);
}

static hid_t random_type(void)
{
    const hid_t plain[] = {H5T_STD_U8LE,   H5T_STD_I8LE,   H5T_STD_U16LE,  H5T_STD_U16BE,
                           H5T_STD_I32BE,  H5T_STD_U32LE,  H5T_STD_I64LE,  H5T_STD_U64LE,
                           H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE,
                           H5T_STD_B8LE,   H5T_C_S1,       H5T_STD_REF_OBJ};
    hid_t type = H5Tcopy(PICK(plain));
    if (below(16) == 0) {
        (void)H5Tclose(type);
        type = H5Tvlen_create(H5T_NATIVE_INT);
    } else if (below(16) == 0) {
        (void)H5Tclose(type);
        type = H5Tenum_create(H5T_NATIVE_UCHAR);
        const unsigned char one = 1;
        (void)H5Tenum_insert(type, "ONE", &one);
    } else if (below(16) == 0) {
        (void)H5Tclose(type);
        type = H5Tcreate(H5T_COMPOUND, 8);
        (void)H5Tinsert(type, "a", 0, H5T_NATIVE_FLOAT);
        (void)H5Tinsert(type, "b", 4, H5T_NATIVE_FLOAT);
    } else if (below(16) == 0) {
        (void)H5Tset_precision(type, 5);
    }
    return type;
}

/* Extents of the dataset that is there, or of none. */
static int old_extents(hid_t file, const char *path, hsize_t dims[8])
{
    const hid_t set = H5Dopen2(file, path, H5P_DEFAULT);
    const hid_t space = set >= 0 ? H5Dget_space(set) : -1;
    const int rank = space >= 0 ? H5Sget_simple_extent_dims(space, dims, NULL) : -1;
    (void)H5Sclose(space);
    (void)H5Dclose(set);
    return rank;
}

static size_t product(int rank, const hsize_t *dims)
{
    size_t count = 1;
    for (int i = 0; i < rank; i++) {
        count = dims[i] > 0 && count > ((size_t)1 << 40) / dims[i] ? (size_t)1 << 40
                                                                   : count * (size_t)dims[i];
    }
    return count;
}

static void replace_dataset(hid_t file)
{
    static unsigned char noise[1 << 22];
    const char *path = PICK(DATASETS);
    hsize_t dims[8] = {0}, chunk[8];
    int rank = old_extents(file, path, dims);
    if (rank < 0 || below(3) == 0) {
        rank = (int)below(6);
        for (int i = 0; i < rank; i++) {
            dims[i] = PICK(EXTENTS);
        }
    } else if (rank > 0 && below(2) == 0) {
        dims[below((uint32_t)rank)] = below(12) == 0 ? (hsize_t)1 << 24 : PICK(EXTENTS);
    }
    (void)H5Ldelete(file, path, H5P_DEFAULT);
    const hid_t type = random_type();
    const hid_t plan = H5Pcreate(H5P_DATASET_CREATE);
    const hid_t space = rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, dims, NULL);
    if (rank > 0 && below(3) == 0) {
        for (int i = 0; i < rank; i++) {
            chunk[i] = dims[i] > 1 ? 1 + below((uint32_t)(dims[i] < 300 ? dims[i] : 300)) : 1;
        }
        (void)H5Pset_chunk(plan, rank, chunk);
        if (below(2) == 0) {
            (void)H5Pset_deflate(plan, 1);
        }
    }
    const hid_t set = H5Dcreate2(file, path, type, space, H5P_DEFAULT, plan, H5P_DEFAULT);
    const size_t bytes = product(rank, dims) * H5Tget_size(type);
    if (set >= 0 && bytes <= sizeof noise && H5Tget_class(type) != H5T_VLEN &&
        H5Tget_class(type) != H5T_REFERENCE && below(8) != 0) {
        for (size_t i = 0; i < bytes; i += 4) {
            const uint32_t word = dp_rng_u32(&rng);
            memcpy(noise + i, &word, 4);
        }
        (void)H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, noise);
    }
    (void)H5Dclose(set);
    (void)H5Sclose(space);
    (void)H5Pclose(plan);
    (void)H5Tclose(type);
}

/* Special values into part of a dataset. */
static void poison(hid_t file)
{
    static float data[1 << 20];
    const char *path = PICK(DATASETS);
    hsize_t dims[8];
    const int rank = old_extents(file, path, dims);
    const size_t count = rank < 0 ? 0 : product(rank, dims);
    const hid_t set = H5Dopen2(file, path, H5P_DEFAULT);
    const hid_t type = set >= 0 ? H5Dget_type(set) : -1;
    const size_t size = type >= 0 ? H5Tget_size(type) : 0;
    if (size > 0 && count > 0 && count * size <= sizeof data &&
        (H5Tget_class(type) == H5T_INTEGER || H5Tget_class(type) == H5T_FLOAT) &&
        H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0) {
        const size_t hits = 1 + below(64);
        for (size_t i = 0; i < hits; i++) {
            const float x = dp_rng_nasty_f32(&rng);
            memcpy((char *)data + below((uint32_t)count) * size, &x, size < 4 ? size : 4);
        }
        (void)H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    }
    (void)H5Tclose(type);
    (void)H5Dclose(set);
}

static void change_links(hid_t file)
{
    const char *path = below(3) == 0 ? PICK(GROUPS) : PICK(DATASETS);
    (void)H5Ldelete(file, path, H5P_DEFAULT);
    switch (below(6)) {
    case 0:
        (void)H5Lcreate_soft(path, file, path, H5P_DEFAULT, H5P_DEFAULT); /* itself */
        break;
    case 1:
        (void)H5Lcreate_external("/nonexistent.h5", "/x", file, path, H5P_DEFAULT, H5P_DEFAULT);
        break;
    case 2:
        (void)H5Lcreate_hard(file, PICK(DATASETS), file, path, H5P_DEFAULT, H5P_DEFAULT);
        break;
    case 3: {
        const hid_t group = H5Gcreate2(file, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        (void)H5Gclose(group);
        break;
    }
    default:
        break;
    }
}

static void change_structure(const char *path)
{
    const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    const int changes = 1 + (int)below(4);
    for (int i = 0; file >= 0 && i < changes; i++) {
        switch (below(8)) {
        case 0:
        case 1:
        case 2:
            change_attribute(file);
            break;
        case 3:
        case 4:
            replace_dataset(file);
            break;
        case 5:
        case 6:
            poison(file);
            break;
        default:
            change_links(file);
        }
    }
    (void)H5Fclose(file);
}

/* ---- changes of the bytes -----------------------------------------------------------------------
 */

static size_t read_file(const char *path, unsigned char *bytes)
{
    FILE *in = fopen(path, "rb");
    const size_t size = in != NULL ? fread(bytes, 1, FILE_BYTES, in) : 0;
    if (in != NULL) {
        (void)fclose(in);
    }
    return size;
}

static bool write_file(const char *path, const unsigned char *bytes, size_t size)
{
    FILE *out = fopen(path, "wb");
    const bool good = out != NULL && fwrite(bytes, 1, size, out) == size;
    return out != NULL && fclose(out) == 0 && good;
}

static void change_bytes(const char *path)
{
    static unsigned char bytes[FILE_BYTES];
    size_t size = read_file(path, bytes);
    const uint32_t flips = below(16);
    for (uint32_t i = 0; size > 0 && i < flips; i++) {
        const size_t range = below(2) == 0 && size > 4096 ? 4096 : size; /* headers lie in front */
        bytes[below((uint32_t)range)] ^= (unsigned char)(1u << below(8));
    }
    size = below(4) == 0 && size > 0 ? below((uint32_t)size) : size;
    (void)write_file(path, bytes, size);
}

/* ---- the command --------------------------------------------------------------------------------
 */

static const char *const OPTIONS[][5] = {
    {NULL},
    {"--no-diagnosis"},
    {"--json"},
    {"--csv", "--threads", "2"},
    {"--policy", "accurate", "--epoch", "S"},
    {"--policy", "guard-14b", "--set", "shift=14"},
    {"--tolerance", "score=ulps:4,output=ulps:2", "--nan", "equal"},
    {"--zero-sign", "ignore", "--sfu", "h200"},
    {"--against", "@base"},
    {"--against", "@self"},
    {"-o", "@report", "--junit", "@junit"},
};

typedef struct {
    int status; /* as waitpid gives it */
    char err[TEXT];
    off_t out_bytes;
} outcome;

static void take_text(const char *path, char *text)
{
    FILE *in = fopen(path, "rb");
    const size_t size = in != NULL ? fread(text, 1, TEXT - 1, in) : 0;
    text[size] = '\0';
    if (in != NULL) {
        (void)fclose(in);
    }
}

static void child(char *const *argv, const char *out, const char *err)
{
    const int to = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int errors = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const struct rlimit cpu = {MOST_SECONDS, MOST_SECONDS + 1};
    (void)setrlimit(RLIMIT_CPU, &cpu);
    (void)alarm(8 * MOST_SECONDS); /* hangs without work too */
    if (to >= 0 && errors >= 0 && dup2(to, 1) >= 0 && dup2(errors, 2) >= 0) {
        (void)execv(argv[0], argv);
    }
    _exit(127);
}

static void run_command(char *const *argv, outcome *o)
{
    char out[256], err[256];
    (void)snprintf(out, sizeof out, "%s/out", folder);
    (void)snprintf(err, sizeof err, "%s/err", folder);
    const pid_t pid = fork();
    if (pid == 0) {
        child(argv, out, err);
    }
    while (waitpid(pid, &o->status, 0) < 0 && errno == EINTR) {
    }
    FILE *in = fopen(out, "rb");
    o->out_bytes = 0;
    if (in != NULL) {
        (void)fseeko(in, 0, SEEK_END);
        o->out_bytes = ftello(in);
        (void)fclose(in);
    }
    take_text(err, o->err);
}

/* What the outcome breaks, or NULL. */
static const char *broken(const outcome *o)
{
    if (!WIFEXITED(o->status)) {
        return "ended by a signal";
    }
    const int status = WEXITSTATUS(o->status);
    if (status > 2) {
        return "ended with another status";
    }
    const char *line = strchr(o->err, '\n');
    if (status == 2 && (strncmp(o->err, "directp: ", 9) != 0 || line == NULL || line[1] != '\0')) {
        return "did not say one line";
    }
    if (status == 2 && o->out_bytes != 0) {
        return "printed although it refused";
    }
    return status < 2 && o->err[0] != '\0' ? "complained although it went on" : NULL;
}

static void in_folder(char *path, size_t size, const char *name)
{
    (void)snprintf(path, size, "%s/%s", folder, name);
}

/* One file compared; false when something broke. */
static bool try_file(const char *path, int option, const char *base, int counts[3])
{
    static char report[256], junit[256], command[512];
    char *argv[10] = {command, (char *)(uintptr_t) "diff", (char *)(uintptr_t)path};
    int argc = 3;
    (void)snprintf(command, sizeof command, "%s", getenv("DIRECTP"));
    in_folder(report, sizeof report, "report.h5");
    in_folder(junit, sizeof junit, "junit.xml");
    for (int i = 0; i < 5 && OPTIONS[option][i] != NULL; i++) {
        const char *word = OPTIONS[option][i];
        word = strcmp(word, "@base") == 0     ? base
               : strcmp(word, "@self") == 0   ? path
               : strcmp(word, "@report") == 0 ? report
               : strcmp(word, "@junit") == 0  ? junit
                                              : word;
        argv[argc++] = (char *)(uintptr_t)word;
    }
    outcome o;
    run_command(argv, &o);
    const char *what = broken(&o);
    if (what == NULL) {
        counts[WEXITSTATUS(o.status)]++;
    } else {
        (void)printf("diff %s", what);
        for (int i = 3; i < argc; i++) {
            (void)printf(" %s", argv[i]);
        }
        (void)printf(" (status 0x%x): %s\n", (unsigned)o.status, o.err);
    }
    return what == NULL;
}

/* ---- the loop -----------------------------------------------------------------------------------
 */

enum { BASES = 3 };

static bool make_bases(char base[BASES][256])
{
    static const char *const options[BASES] = {"--seq 128 --heads 2 --kv-heads 1 --policy fast",
                                               "--seq 160 --heads 1 --policy accurate --epoch S",
                                               "--seq 128 --heads 1 --policy guard-14b --causal"};
    bool good = true;
    for (int i = 0; good && i < BASES; i++) {
        char name[32], line[1024];
        (void)snprintf(name, sizeof name, "base%d.h5", i);
        in_folder(base[i], 256, name);
        (void)snprintf(line, sizeof line,
                       "'%s' attend --random 5 --threads 1 --stages all %s -o '%s' > /dev/null",
                       getenv("DIRECTP"), options[i], base[i]);
        good = system(line) == 0;
    }
    return good;
}

static void remove_folder(void)
{
    static const char *const names[] = {"out",      "err",      "report.h5", "junit.xml",
                                        "base0.h5", "base1.h5", "base2.h5",  "case.h5"};
    char path[256];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        in_folder(path, sizeof path, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

/* `cases` files, or as many as `seconds` hold. Failures found. */
static int loop(uint64_t seed, int cases, double seconds)
{
    static unsigned char bytes[FILE_BYTES];
    char base[BASES][256], path[256];
    int failures = 0, done = 0, counts[3] = {0};
    const time_t start = time(NULL);
    in_folder(path, sizeof path, "case.h5");
    if (!make_bases(base)) {
        (void)puts("DIRECTP must name the command");
        return 1;
    }
    for (; done < cases || difftime(time(NULL), start) < seconds; done++) {
        rng.state = seed + (uint64_t)done;
        const char *from = base[below(BASES)];
        const size_t size = read_file(from, bytes);
        (void)write_file(path, bytes, size);
        if (below(8) != 0) {
            change_structure(path);
        }
        if (below(3) == 0) {
            change_bytes(path);
        }
        const int option = (int)below(sizeof OPTIONS / sizeof OPTIONS[0]);
        if (!try_file(path, option, from, counts)) {
            char kept[512];
            (void)snprintf(kept, sizeof kept, "fuzz_dump_%llu.h5",
                           (unsigned long long)(seed + (uint64_t)done));
            (void)write_file(kept, bytes, read_file(path, bytes));
            (void)printf("kept %s, made from %s\n", kept, from);
            (void)fflush(stdout);
            failures++;
        }
    }
    (void)printf("%d files from seed %llu: %d the same, %d different, %d refused, %d failures\n",
                 done, (unsigned long long)seed, counts[0], counts[1], counts[2], failures);
    return failures;
}

int main(int argc, char **argv)
{
    const char *parent = getenv("TMPDIR");
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    (void)snprintf(folder, sizeof folder, "%.150s/directp-fuzz-XXXXXX",
                   parent != NULL ? parent : "/tmp");
    if (mkdtemp(folder) == NULL || getenv("DIRECTP") == NULL) {
        (void)puts("DIRECTP must name the command");
        return 1;
    }
    char *end = NULL;
    const double seconds = argc > 1 ? strtod(argv[1], &end) : 0.0;
    int failures;
    if (argc > 1 && *end != '\0') {
        int counts[3] = {0};
        failures = 0;
        for (int i = 0; i < (int)(sizeof OPTIONS / sizeof OPTIONS[0]); i++) {
            failures += !try_file(argv[1], i, argv[1], counts);
        }
    } else {
        const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
        failures = loop(seed, argc > 1 ? 0 : 60, seconds);
    }
    remove_folder();
    return failures > 0 ? 1 : 0;
}
