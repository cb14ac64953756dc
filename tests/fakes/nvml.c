/* A driver library for machines without a GPU.
 *
 * Values come from the text file that DANLU_FAKE_NVML names, read again at every call, so a test
 * can write a GPU's life. A line is a key, a space and a value; the last line of a key counts.
 *
 *   devices 2                    driver 550.54.15
 *   gpu.0.uuid GPU-…             gpu.0.name Tesla V100-SXM2-16GB
 *   gpu.0.memory.total 17179869184   gpu.0.memory.used …   gpu.0.memory.reserved …
 *   gpu.0.busy 55
 *   gpu.0.mig 2                  MIG is on, with this many places
 *   gpu.0.mig.1.uuid MIG-…       a device in place 1 (a place without uuid is empty)
 *   fail.nvmlDeviceGetName 3     the function gives this error
 *   fail.nvmlDeviceGetName.gpu.1 15   … for this device
 *   crash.nvmlInit_v2 1          the function kills the process
 *   hang.nvmlInit_v2 1           the function never returns
 *   say.nvmlInit_v2 text         the function writes to stdout and stderr, as some do
 *
 * Every other function of the library is made by the test as "not supported".
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
enum { MIG_FIRST = 1000, MIG_PLACES = 100 };

typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned int version; unsigned long long total, reserved, free, used; } memory2_t;
typedef struct { unsigned int gpu, memory; } utilization_t;

static int look(const char *key, char *value, size_t size)
{
    const char *path = getenv("DANLU_FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[1024];
    int found = 0;
    size_t length = strlen(key);
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, key, length) && line[length] == ' ') {
            snprintf(value, size, "%s", line + length + 1);
            found = 1;
        }
    }
    fclose(file);
    return found;
}

static unsigned long long number(const char *key, unsigned long long otherwise)
{
    char value[64];
    return look(key, value, sizeof value) ? strtoull(value, NULL, 10) : otherwise;
}

/* The device of a handle as the beginning of its keys: gpu.0 or gpu.0.mig.1 */
static const char *scope_of(void *handle)
{
    static char scope[64];
    long at = (long)handle - 1;
    if (at < MIG_FIRST)
        snprintf(scope, sizeof scope, "gpu.%ld", at);
    else
        snprintf(scope, sizeof scope, "gpu.%ld.mig.%ld", (at - MIG_FIRST) / MIG_PLACES,
                 (at - MIG_FIRST) % MIG_PLACES);
    return scope;
}

static int scripted(const char *function, const char *scope)
{
    char key[256], text[256];
    snprintf(key, sizeof key, "say.%s", function);
    if (look(key, text, sizeof text)) {
        printf("%s\n", text);
        fflush(stdout);
        fprintf(stderr, "%s\n", text);
    }
    snprintf(key, sizeof key, "crash.%s", function);
    if (number(key, 0))
        raise(SIGSEGV);
    snprintf(key, sizeof key, "hang.%s", function);
    while (number(key, 0))
        sleep(1);
    snprintf(key, sizeof key, "fail.%s.%s", function, scope);
    if (number(key, 0))
        return (int)number(key, 0);
    snprintf(key, sizeof key, "fail.%s", function);
    return (int)number(key, 0);
}

#define ENTER(scope)                                                                               \
    do {                                                                                           \
        int failed = scripted(__func__, scope);                                                    \
        if (failed)                                                                                \
            return failed;                                                                         \
    } while (0)

static int text_of(void *handle, const char *what, char *value, unsigned int size)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%s", scope_of(handle), what);
    return look(key, value, size) ? SUCCESS : NOT_SUPPORTED;
}

static unsigned long long number_of(void *handle, const char *what, unsigned long long otherwise)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%s", scope_of(handle), what);
    return number(key, otherwise);
}

int nvmlInit_v2(void) { ENTER(""); return SUCCESS; }
int nvmlInitWithFlags(unsigned int flags) { (void)flags; return nvmlInit_v2(); }
int nvmlShutdown(void) { ENTER(""); return SUCCESS; }

const char *nvmlErrorString(int code)
{
    static char text[64];
    snprintf(text, sizeof text, "fake error %d", code);
    return text;
}

int nvmlSystemGetDriverVersion(char *version, unsigned int size)
{
    ENTER("");
    return look("driver", version, size) ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
    ENTER("");
    *count = (unsigned int)number("devices", 0);
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle)
{
    void *made = (void *)(long)(index + 1);
    ENTER(scope_of(made));
    if (index >= number("devices", 0))
        return INVALID_ARGUMENT;
    *handle = made;
    return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle)
{
    char found[128];
    ENTER("");
    for (long index = 0; index < (long)number("devices", 0); index++) {
        long places = (long)number_of((void *)(index + 1), "mig", 0);
        for (long place = -1; place < places; place++) {
            long at = place < 0 ? index : MIG_FIRST + index * MIG_PLACES + place;
            void *made = (void *)(at + 1);
            if (text_of(made, "uuid", found, sizeof found) == SUCCESS && !strcmp(found, uuid)) {
                ENTER(scope_of(made));
                *handle = made;
                return SUCCESS;
            }
        }
    }
    return NOT_FOUND;
}

int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned int size)
{
    ENTER(scope_of(handle));
    return text_of(handle, "uuid", uuid, size);
}

int nvmlDeviceGetName(void *handle, char *name, unsigned int size)
{
    ENTER(scope_of(handle));
    return text_of(handle, "name", name, size);
}

int nvmlDeviceGetMemoryInfo(void *handle, memory_t *memory)
{
    ENTER(scope_of(handle));
    unsigned long long reserved = number_of(handle, "memory.reserved", 0);
    memory->total = number_of(handle, "memory.total", 0);
    memory->used = number_of(handle, "memory.used", 0) + reserved;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(void *handle, memory2_t *memory)
{
    ENTER(scope_of(handle));
    memory->total = number_of(handle, "memory.total", 0);
    memory->reserved = number_of(handle, "memory.reserved", 0);
    memory->used = number_of(handle, "memory.used", 0);
    memory->free = memory->total - memory->used - memory->reserved;
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *handle, utilization_t *utilization)
{
    ENTER(scope_of(handle));
    if ((long)handle - 1 >= MIG_FIRST || number_of(handle, "mig", 0))
        return NOT_SUPPORTED;
    utilization->gpu = (unsigned int)number_of(handle, "busy", 0);
    utilization->memory = 0;
    return SUCCESS;
}

int nvmlDeviceGetMigMode(void *handle, unsigned int *current, unsigned int *pending)
{
    ENTER(scope_of(handle));
    *current = *pending = number_of(handle, "mig", 0) > 0;
    return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned int *count)
{
    ENTER(scope_of(handle));
    *count = (unsigned int)number_of(handle, "mig", 0);
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned int place, void **mig)
{
    char uuid[128];
    void *made = (void *)(MIG_FIRST + ((long)handle - 1) * MIG_PLACES + (long)place + 1);
    ENTER(scope_of(made));
    if (text_of(made, "uuid", uuid, sizeof uuid) != SUCCESS)
        return NOT_FOUND;
    *mig = made;
    return SUCCESS;
}
