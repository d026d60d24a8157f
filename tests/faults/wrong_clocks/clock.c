// Preloaded into a service: its wall clock is as many seconds ahead as the file WRONG_CLOCK_FILE says, or behind. It is read anew
// each time. Time-outs go by other clocks and stay right.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long wrong_by(void) {
  const char *path = getenv("WRONG_CLOCK_FILE");
  int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return 0;
  }
  char text[32] = {0};
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  return length > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int outcome = (int)syscall(SYS_clock_gettime, clock, now);
  if (outcome == 0 && clock == CLOCK_REALTIME) {
    now->tv_sec += wrong_by();
  }
  return outcome;
}
