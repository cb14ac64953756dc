/* Preloaded into a server: calls on files whose path holds FAULTY_MATCH fail with EIO while the
 * file FAULTY_ORDERS holds their name: "fsync", "write". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int ordered(const char *call) {
  const char *path = getenv("FAULTY_ORDERS");
  char text[64] = {0};
  if (path == NULL) return 0;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  return size > 0 && strstr(text, call) != NULL;
}

static int meant(int file) {
  const char *match = getenv("FAULTY_MATCH");
  char link[64], path[4096] = {0};
  if (match == NULL) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  return readlink(link, path, sizeof path - 1) > 0 && strstr(path, match) != NULL;
}

#define FAILS(call, file)            \
  if (meant(file) && ordered(call)) { \
    errno = EIO;                     \
    return -1;                       \
  }

int fsync(int file) {
  FAILS("fsync", file)
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
  FAILS("fsync", file)
  return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}

ssize_t write(int file, const void *data, size_t size) {
  FAILS("write", file)
  return ((ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(file, data, size);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
  FAILS("write", file)
  return ((ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64"))(file, data, size, at);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
  FAILS("write", file)
  return ((ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite"))(file, data, size, at);
}
