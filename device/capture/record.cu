/* SPDX-License-Identifier: MIT */
#include "device/capture/record.h"

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <ctime>

#include "device/capture/capture.h"

void dp_record_say(dp_recorder *r, const char *format, ...)
{
    if (!r->quiet) {
        va_list arguments;
        va_start(arguments, format);
        (void)vprintf(format, arguments);
        va_end(arguments);
        (void)fflush(stdout);
    }
}

bool dp_record_cuda(dp_recorder *r, const char *where, int status)
{
    const cudaError_t pending = cudaGetLastError();
    const cudaError_t worst = status != cudaSuccess ? (cudaError_t)status : pending;
    return worst == cudaSuccess || dp_fail(r->error, "%s: %s: report this with the device's name",
                                           where, cudaGetErrorString(worst));
}

void dp_record_group(dp_recorder *r, const char *group, const char *instruction)
{
    (void)dp_h5out_group(r->out, group);
    (void)dp_h5out_text(r->out, "instruction", instruction);
    (void)dp_h5out_text(r->out, "arch", r->arch);
    (void)dp_h5out_text(r->out, "source", "hardware");
}

/* The kernel driver's version by NVML, which only a machine with a driver has. */
static void dp_driver_version(char *text, size_t size)
{
    (void)snprintf(text, size, "unknown");
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == nullptr) {
        return;
    }
    int (*start)(void) = (int (*)(void))dlsym(library, "nvmlInit_v2");
    int (*get)(char *, unsigned) =
        (int (*)(char *, unsigned))dlsym(library, "nvmlSystemGetDriverVersion");
    if (start == nullptr || get == nullptr || start() != 0 || get(text, (unsigned)size) != 0) {
        (void)snprintf(text, size, "unknown");
    }
    (void)dlclose(library);
}

static void dp_provenance(dp_recorder *r, const cudaDeviceProp *device)
{
    char text[96];
    int version = 0;
    time_t now = time(nullptr);
    struct tm utc = {};
    (void)dp_h5out_group(r->out, nullptr);
    (void)dp_h5out_int(r->out, "schema", 1);
    (void)dp_h5out_text(r->out, "kind", "capture");
    (void)dp_h5out_text(r->out, "producer", "directp capture record");
    (void)dp_h5out_text(r->out, "device", device->name);
    dp_driver_version(text, sizeof text);
    (void)dp_h5out_text(r->out, "driver", text);
    (void)cudaDriverGetVersion(&version);
    (void)snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
    (void)dp_h5out_text(r->out, "driver_cuda", text);
    (void)snprintf(text, sizeof text, "%d.%d.%d", __CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__,
                   __CUDACC_VER_BUILD__);
    (void)dp_h5out_text(r->out, "cuda", text);
    (void)dp_h5out_text(r->out, "arch", r->arch);
    (void)gmtime_r(&now, &utc);
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    (void)dp_h5out_text(r->out, "date", text);
    (void)dp_h5out_int(r->out, "seed", (int64_t)r->seed);
    dp_record_say(r, "device %s, %s, %d multiprocessors\n", device->name, r->arch,
                  device->multiProcessorCount);
}

static bool dp_chosen(const char *only, const char *name)
{
    if (only == nullptr || only[0] == '\0') {
        return true;
    }
    const size_t length = strlen(name);
    for (const char *at = strstr(only, name); at != nullptr; at = strstr(at + 1, name)) {
        if ((at == only || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

static const struct {
    const char *name;
    void (*run)(dp_recorder *r);
} dp_parts[] = {{"sfu", dp_record_sfu},         {"lg2", dp_record_lg2},
                {"convert", dp_record_convert}, {"scalar", dp_record_scalar},
                {"mma", dp_record_mma},         {"block", dp_record_block}};

static bool dp_check_names(const char *only, dp_error *error)
{
    for (const char *at = only; at != nullptr && *at != '\0';) {
        const size_t length = strcspn(at, ",");
        bool known = false;
        for (const auto &part : dp_parts) {
            known = known || (strlen(part.name) == length && strncmp(part.name, at, length) == 0);
        }
        if (!known) {
            return dp_fail(
                error,
                "--only: '%.*s' is no part: choose among sfu, lg2, convert, scalar, mma, block",
                (int)length, at);
        }
        at += length + (at[length] == ',' ? 1 : 0);
    }
    return true;
}

dp_capture_status dp_capture_record(const char *path, const dp_capture_record_options *options,
                                    dp_error *error)
{
    dp_error local = {};
    dp_recorder r = {};
    cudaDeviceProp device;
    r.error = error != nullptr ? error : &local;
    if (!dp_check_names(options->only, r.error)) {
        return DP_CAPTURE_FAILED;
    }
    cudaError_t status = cudaSetDevice(options->device);
    status = status == cudaSuccess ? cudaGetDeviceProperties(&device, options->device) : status;
    if (status != cudaSuccess) {
        (void)dp_fail(r.error, "device %d: %s: run on a machine with an NVIDIA GPU and driver",
                      options->device, cudaGetErrorString(status));
        return DP_CAPTURE_NO_DEVICE;
    }
    r.capability = device.major * 10 + device.minor;
    (void)snprintf(r.arch, sizeof r.arch, "sm_%da", r.capability);
    r.tiles = options->tiles != 0 ? options->tiles : 2;
    r.seed = options->seed;
    r.quiet = options->quiet;
    r.out = dp_h5out_open(path, options->level != 0 ? options->level : 4, r.error);
    if (r.out == nullptr) {
        return DP_CAPTURE_FAILED;
    }
    dp_provenance(&r, &device);
    for (const auto &part : dp_parts) {
        if (dp_chosen(options->only, part.name) && r.error->text[0] == '\0') {
            const time_t start = time(nullptr);
            part.run(&r);
            dp_record_say(&r, "-- %s: %ld s\n", part.name, (long)(time(nullptr) - start));
        }
    }
    return dp_h5out_close(r.out) ? DP_CAPTURE_DONE : DP_CAPTURE_FAILED;
}
