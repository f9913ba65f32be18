// Calls that change files below one folder: counted, and from the n-th on refused, cut in half, or the last
// thing the process does. For LD_PRELOAD; `arm` says which. Built and armed by fault_library.py.
//
// Every call is written to `log_fd` before it is done, as "NAME BYTES PATH", so that nobody has to ask the
// dead. What is called goes to the system directly: the names below are all that a program finds under them.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum fault {
  NONE,       // count only
  NO_SPACE,   // from the n-th on what needs room fails with ENOSPC; what gives it back does not
  HALF_FULL,  // the same, but the n-th, if it writes, still writes half
  IO_ERROR,   // the n-th fails with EIO, once
  READ_ONLY,  // from the n-th on all fail with EROFS, as on a disk that the system stopped writing to
  KILL,       // SIGKILL instead of the n-th
  TORN,       // the n-th writes half, or is done if it writes nothing; then SIGKILL
  SHORT,      // from the n-th on every write of more than one byte writes half, as it may
};

static char folder[PATH_MAX];
static size_t folder_length;
static long fault_at;
static enum fault armed;
static int log_fd = -1;
static atomic_long calls;

// Fault number `fault` from the `at`-th call on that changes something below `path`; 0 only counts.
void arm(const char* path, long at, int fault, int log) {
  folder_length = strlen(strcpy(folder, path));
  fault_at = at;
  armed = (enum fault)fault;
  log_fd = log;
  atomic_store(&calls, 0);
}

struct verdict {
  int error;      // errno to fail with, 0 for none
  size_t length;  // bytes to write
  int die;        // whether the process ends behind the call
};

static int is_below(const char* path) {
  return folder_length && !strncmp(path, folder, folder_length) &&
         (path[folder_length] == '/' || !path[folder_length]);
}

static int is_armed(long call) { return fault_at && call >= fault_at; }

// What becomes of a call that changes `path`; `frees`: it gives room back instead of taking it.
static struct verdict judge(const char* name, const char* path, size_t length, int frees) {
  struct verdict verdict = {0, length, 0};
  if (!is_below(path)) return verdict;
  long call = atomic_fetch_add(&calls, 1) + 1;
  char line[PATH_MAX + 64];
  int line_length = snprintf(line, sizeof line, "%s %zu %s\n", name, length, path);
  if (log_fd >= 0) syscall(SYS_write, log_fd, line, (size_t)line_length);
  if (!is_armed(call)) return verdict;
  int is_nth = call == fault_at;
  switch (armed) {
    case NONE:
      break;
    case NO_SPACE:
      verdict.error = frees ? 0 : ENOSPC;
      break;
    case HALF_FULL:
      if (is_nth && length > 1)
        verdict.length = length / 2;
      else
        verdict.error = frees ? 0 : ENOSPC;
      break;
    case IO_ERROR:
      verdict.error = is_nth ? EIO : 0;
      break;
    case READ_ONLY:
      verdict.error = EROFS;
      break;
    case KILL:
      if (is_nth) kill(getpid(), SIGKILL);
      break;
    case TORN:
      verdict.die = is_nth;
      verdict.length = is_nth && length > 1 ? length / 2 : length;
      break;
    case SHORT:
      verdict.length = length > 1 ? length / 2 : length;
      break;
  }
  return verdict;
}

static long finish(struct verdict verdict, long result) {
  if (verdict.die) kill(getpid(), SIGKILL);
  return result;
}

static void path_of_fd(int fd, char* path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  path[length < 0 ? 0 : length] = 0;
}

static void path_at(int dir_fd, const char* name, char* path) {
  char base[PATH_MAX];
  if (name[0] == '/' || dir_fd == AT_FDCWD) {  // all paths of the tests are absolute
    snprintf(path, PATH_MAX, "%s", name);
    return;
  }
  path_of_fd(dir_fd, base);
  snprintf(path, PATH_MAX, "%.*s/%s", PATH_MAX / 2, base, name);
}

// On a verdict's error: errno, and -1 from the function that it is used in.
#define REFUSE(verdict)      \
  if ((verdict).error) {     \
    errno = (verdict).error; \
    return -1;               \
  }

static int open_at(int dir_fd, const char* name, int flags, mode_t mode) {
  char path[PATH_MAX];
  path_at(dir_fd, name, path);
  struct stat state;
  int creates = (flags & O_CREAT) && (flags & O_EXCL || fstatat(dir_fd, name, &state, 0));
  struct verdict verdict = {0, 0, 0};
  if (creates || flags & O_TRUNC) verdict = judge(creates ? "create" : "truncate", path, 0, !creates);
  REFUSE(verdict)
  return (int)finish(verdict, syscall(SYS_openat, dir_fd, name, flags, mode));
}

#define OPEN(name)                               \
  int name(const char* path, int flags, ...) {   \
    va_list rest;                                \
    va_start(rest, flags);                       \
    mode_t mode = va_arg(rest, mode_t);          \
    va_end(rest);                                \
    return open_at(AT_FDCWD, path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                       \
  int name(int dir_fd, const char* path, int flags, ...) { \
    va_list rest;                                          \
    va_start(rest, flags);                                 \
    mode_t mode = va_arg(rest, mode_t);                    \
    va_end(rest);                                          \
    return open_at(dir_fd, path, flags, mode);             \
  }
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int fd, const void* data, size_t length) {
  char path[PATH_MAX];
  path_of_fd(fd, path);
  struct verdict verdict = judge("write", path, length, 0);
  REFUSE(verdict)
  return finish(verdict, syscall(SYS_write, fd, data, verdict.length));
}

#define PWRITE(name)                                                             \
  ssize_t name(int fd, const void* data, size_t length, off_t at) {              \
    char path[PATH_MAX];                                                         \
    path_of_fd(fd, path);                                                        \
    struct verdict verdict = judge("write", path, length, 0);                    \
    REFUSE(verdict)                                                              \
    return finish(verdict, syscall(SYS_pwrite64, fd, data, verdict.length, at)); \
  }
PWRITE(pwrite)
PWRITE(pwrite64)

#define FTRUNCATE(name)                                              \
  int name(int fd, off_t length) {                                   \
    char path[PATH_MAX];                                             \
    path_of_fd(fd, path);                                            \
    struct verdict verdict = judge("truncate", path, 0, 1);          \
    REFUSE(verdict)                                                  \
    return (int)finish(verdict, syscall(SYS_ftruncate, fd, length)); \
  }
FTRUNCATE(ftruncate)
FTRUNCATE(ftruncate64)

// Nothing is brought to the disk: what a process wrote outlives its end without, and no power fails in a
// test.
static int sync_fd(int fd) {
  char path[PATH_MAX];
  path_of_fd(fd, path);
  struct verdict verdict = judge("sync", path, 0, 0);
  REFUSE(verdict)
  return (int)finish(verdict, 0);
}

int fsync(int fd) { return sync_fd(fd); }
int fdatasync(int fd) { return sync_fd(fd); }

int renameat(int old_dir, const char* old_name, int new_dir, const char* new_name) {
  char path[PATH_MAX];
  path_at(new_dir, new_name, path);
  struct verdict verdict = judge("rename", path, 0, 0);
  REFUSE(verdict)
  return (int)finish(verdict, syscall(SYS_renameat2, old_dir, old_name, new_dir, new_name, 0));
}

int rename(const char* old_name, const char* new_name) {
  return renameat(AT_FDCWD, old_name, AT_FDCWD, new_name);
}

int mkdirat(int dir_fd, const char* name, mode_t mode) {
  char path[PATH_MAX];
  struct stat state;
  path_at(dir_fd, name, path);
  struct verdict verdict = {0, 0, 0};
  if (fstatat(dir_fd, name, &state, 0)) verdict = judge("mkdir", path, 0, 0);
  REFUSE(verdict)
  return (int)finish(verdict, syscall(SYS_mkdirat, dir_fd, name, mode));
}

int mkdir(const char* name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

int unlinkat(int dir_fd, const char* name, int flags) {
  char path[PATH_MAX];
  struct stat state;
  path_at(dir_fd, name, path);
  struct verdict verdict = {0, 0, 0};
  if (!fstatat(dir_fd, name, &state, AT_SYMLINK_NOFOLLOW)) verdict = judge("remove", path, 0, 1);
  REFUSE(verdict)
  return (int)finish(verdict, syscall(SYS_unlinkat, dir_fd, name, flags));
}

int unlink(const char* name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char* name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }
