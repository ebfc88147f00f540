#define _GNU_SOURCE
// Connects two new network devices with a delay, loss and a limited rate: for kernels without sch_netem.
//
//   wire DEVICE_A DEVICE_B SETTINGS_FILE
//
// The file holds three numbers, "DELAY_MS LOSS_PERCENT RATE_MBIT", for each direction alike; a rate of 0 is unlimited.
// SIGHUP makes it read them again. It prints "ready" once both devices exist, and lives until it is killed; the devices
// end with it.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { frame_max = 2048, queue_max = 65536 };

struct frame {
  int64_t due_ns;
  int length;
  char *bytes;
};

// Frames of one direction, in order: a ring.
struct lane {
  int from, to;
  struct frame ring[queue_max];
  unsigned head, tail;
  int64_t line_free_ns;
};

static struct lane lanes[2];
static double delay_ms, loss_percent, rate_mbit;
static volatile sig_atomic_t reread = 1;

static void on_hangup(int signal) {
  (void)signal;
  reread = 1;
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int make_device(const char *name) {
  struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
  int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (device < 0 || ioctl(device, TUNSETIFF, &request) < 0) {
    perror(name);
    exit(1);
  }
  return device;
}

static void read_settings(const char *path) {
  FILE *file = fopen(path, "r");
  if (file == NULL) return;
  double delay, loss, rate;
  if (fscanf(file, "%lf %lf %lf", &delay, &loss, &rate) == 3) delay_ms = delay, loss_percent = loss, rate_mbit = rate;
  fclose(file);
}

// Reads arrived frames at one end; the delivery time depends on the frames already on the line.
static void take(struct lane *lane) {
  char buffer[frame_max];
  ssize_t length;
  while ((length = read(lane->from, buffer, sizeof buffer)) > 0) {
    if (drand48() * 100 < loss_percent) continue;
    if (lane->tail - lane->head == queue_max) continue;
    int64_t sent = now_ns();
    if (rate_mbit > 0) {
      if (lane->line_free_ns > sent) sent = lane->line_free_ns;
      sent += (int64_t)(length * 8 * 1000 / rate_mbit);
      // A queue of a quarter of a second, as in a router; more is dropped.
      if (sent - now_ns() > 250000000LL) continue;
      lane->line_free_ns = sent;
    }
    struct frame *frame = &lane->ring[lane->tail % queue_max];
    frame->bytes = malloc(length);
    if (frame->bytes == NULL) continue;
    memcpy(frame->bytes, buffer, length);
    frame->length = length;
    frame->due_ns = sent + (int64_t)(delay_ms * 1000000);
    lane->tail++;
  }
}

// Delivers due frames and returns the time until the next one; negative when none is in flight.
static int64_t deliver(struct lane *lane) {
  while (lane->head != lane->tail) {
    struct frame *frame = &lane->ring[lane->head % queue_max];
    if (frame->due_ns > now_ns()) return frame->due_ns;
    if (write(lane->to, frame->bytes, frame->length) < 0) { /* The device is down: so is the cable. */ }
    free(frame->bytes);
    lane->head++;
  }
  return -1;
}

int main(int count, char **arguments) {
  if (count != 4) return 2;
  struct sigaction action = {.sa_handler = on_hangup};
  sigaction(SIGHUP, &action, NULL);
  srand48(getpid());
  int a = make_device(arguments[1]), b = make_device(arguments[2]);
  lanes[0].from = lanes[1].to = a;
  lanes[0].to = lanes[1].from = b;
  puts("ready");
  fflush(stdout);
  for (;;) {
    if (reread) {
      reread = 0;
      read_settings(arguments[3]);
    }
    int64_t next = -1;
    for (int i = 0; i < 2; i++) {
      int64_t due = deliver(&lanes[i]);
      if (due >= 0 && (next < 0 || due < next)) next = due;
    }
    int64_t wait = next < 0 ? -1 : next - now_ns();
    struct timespec pause = {.tv_sec = wait < 0 ? 0 : wait / 1000000000LL, .tv_nsec = wait < 0 ? 0 : wait % 1000000000LL};
    struct pollfd ends[2] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
    ppoll(ends, 2, next < 0 ? NULL : &pause, NULL);
    if (ends[0].revents) take(&lanes[0]);
    if (ends[1].revents) take(&lanes[1]);
  }
}
