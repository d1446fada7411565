// Passes a trigger every 5 ms for two seconds; says once that it began.
#include "horolog/trace.h"
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	puts("begun");
	fflush(stdout);
	for (int i = 0; i < 400; i++) {
		HOROLOG_TRIGGER("row/step", i);
		usleep(5000);
	}
	puts("ended");
	return 7;
}
