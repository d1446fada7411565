// The command ends with 7 after a moment; a daemon of its goes on for a second and until there is a file `….go`, and writes a file at its end.
#include "horolog/trace.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	for (int i = 0; i < 2; i++) {
		pid_t child = fork();
		if (child) {
			usleep(i ? 0 : 100000);
			_exit(child < 0 ? 9 : i ? 0 : 7);
		}
		setsid();
	}
	// Whoever reads what the command says does not wait for the daemon.
	int nowhere = open("/dev/null", O_RDWR);
	for (int stream = 0; stream < 3; stream++)
		dup2(nowhere, stream);
	for (int i = 0; i < 20; i++) {
		HOROLOG_TRIGGER("row/step", i);
		usleep(50000);
	}
	char go[4096];
	snprintf(go, sizeof go, "%s.go", argv[argc - 1]);
	for (int i = 0; i < 400 && access(go, F_OK); i++)
		usleep(50000);
	int file = open(argv[argc - 1], O_CREAT | O_WRONLY, 0600);
	return write(file, "done\n", 5) != 5;
}
