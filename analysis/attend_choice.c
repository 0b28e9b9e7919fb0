/* SPDX-License-Identifier: MIT */
#include "analysis/attend_choice.h"

/* The names that a refusal lists at its end. */
static const char *names_of(const char *refusal)
{
    const char *list = strstr(refusal, "one of: ");
    return list != NULL ? list + strlen("one of:") : "";
}

bool dp_inputs_choice(const char *verb, const dp_inputs_request *request, const char *path,
                      dp_attend_inputs *inputs, dp_error *error)
{
    if (request->transform.causal && request->transform.no_causal) {
        return dp_fail(error, "--causal and --no-causal: they exclude each other: give one");
    }
    if (request->random == (path != NULL)) {
        return dp_fail(error,
                       request->random ? "%s: --random and a file: give one of them"
                                       : "%s: no inputs: give a file or --random SEED",
                       verb);
    }
    if (request->random) {
        const int64_t kv = request->kv_heads > 0 ? request->kv_heads : request->heads;
        if (request->heads % kv != 0) {
            return dp_fail(error,
                           "--kv-heads %lld: does not divide %lld query heads: choose a divisor",
                           (long long)kv, (long long)request->heads);
        }
        return dp_attend_random((uint64_t)request->seed, (int)request->sms, (size_t)request->batch,
                                (size_t)request->seq, (size_t)request->heads, (size_t)kv,
                                (size_t)request->dim, request->threads, &request->transform, inputs,
                                error);
    }
    dp_tensors tensors;
    if (!dp_tensors_load(path, &tensors, error)) {
        return false;
    }
    const bool good = dp_attend_from_tensors(&tensors, path, &request->transform, inputs, error);
    dp_tensors_free(&tensors);
    return good;
}

/* The next item of a list separated by commas; *text moves past it. */
static bool next_item(const char **text, char *item, size_t size, dp_error *error)
{
    const size_t length = strcspn(*text, ",");
    if (length >= size) {
        return dp_fail(error, "--set: '%.40s...' is too long: give NAME=VALUE", *text);
    }
    memcpy(item, *text, length);
    item[length] = '\0';
    *text += length;
    *text += **text == ',' ? 1 : 0;
    return true;
}

static bool is_mma(const char *item)
{
    return strncmp(item, "mma.", 4) == 0 && strchr(item, '=') != NULL;
}

static bool set_mma(char *item, dp_mma_switches *mma, dp_error *error)
{
    char *equals = strchr(item, '=');
    *equals = '\0';
    return dp_mma_switch_set(mma, item, equals + 1, error);
}

/* One field of a policy, or one switch. */
static bool set_direct(const char *item, dp_forward_policy *policy, dp_switches *switches,
                       dp_error *error)
{
    dp_error first = {""};
    if (dp_forward_policy_set(policy, item, &first) || dp_switches_set(switches, item, NULL)) {
        return true;
    }
    if (strstr(first.text, "no such field") == NULL) {
        return dp_fail(error, "--set: %s", first.text);
    }
    dp_error second = {""};
    (void)dp_switches_set(switches, item, &second);
    if (strstr(second.text, "no such switch") == NULL) {
        return dp_fail(error, "--set: %s", second.text);
    }
    return dp_fail(error, "--set: '%.60s': no such field or switch: use one of%s%s mma.*", item,
                   names_of(first.text), names_of(second.text));
}

bool dp_apply_settings(const char *text, dp_forward_policy *policy, dp_switches *switches,
                       dp_mma_switches *mma, dp_error *error)
{
    char item[128];
    while (*text != '\0') {
        if (!next_item(&text, item, sizeof item, error) ||
            !(is_mma(item) ? set_mma(item, mma, error)
                           : set_direct(item, policy, switches, error))) {
            return false;
        }
    }
    return true;
}

bool dp_route_choice(const char *name, const char *settings, dp_route *route, dp_mma_switches *mma,
                     dp_error *error)
{
    char item[128];
    if (!dp_route_find(name, route, error)) {
        return false;
    }
    while (settings != NULL && *settings != '\0') {
        dp_error inner = {""};
        if (!next_item(&settings, item, sizeof item, error)) {
            return false;
        }
        if (!(is_mma(item) ? set_mma(item, mma, &inner) : dp_route_set(route, item, &inner))) {
            return dp_fail(error, "--set: %s", inner.text);
        }
    }
    return dp_route_check(route, error);
}

const dp_sfu *dp_sfu_choice(const char *name)
{
    return strcmp(name, "h200") == 0 ? dp_sfu_h200() : dp_sfu_exact();
}

bool dp_launch_choice(const char *policy_name, const char *epoch, const char *settings,
                      const char *sfu, double softmax_scale, dp_direct_p *launch,
                      dp_mma_switches *mma, dp_error *error)
{
    dp_forward_policy policy;
    dp_switches switches = dp_switches_default();
    if (!dp_forward_policy_find(policy_name, &policy, error) ||
        !dp_apply_settings(settings != NULL ? settings : "", &policy, &switches, mma, error)) {
        return false;
    }
    if (policy.reference == DP_REFERENCE_ANCHOR && policy.anchor_keys == 0) {
        return dp_fail(error, "--set anchor: reference=anchor needs keys, the maximum over none is "
                              "-Inf and every row invalid: give 1 to 128");
    }
    *launch = dp_direct_p_make(&policy, strcmp(epoch, "S") == 0 ? DP_EPOCH_S : DP_EPOCH_R,
                               &switches, softmax_scale, dp_sfu_choice(sfu));
    return true;
}
