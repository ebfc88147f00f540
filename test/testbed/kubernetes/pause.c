// Process 1 of a pod's sandbox: holds its namespaces, and waits for whoever lost a parent.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_end(int signal) { (void)signal; _exit(0); }
static void on_child(int signal) { (void)signal; while (waitpid(-1, 0, WNOHANG) > 0) {} }

int main(void) {
  signal(SIGTERM, on_end);
  signal(SIGINT, on_end);
  signal(SIGCHLD, on_child);
  for (;;) pause();
}
