// Two threads take a lock 100 times each and pass a trigger inside.
#include "horolog/trace.h"
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;

static void *work(void *unused)
{
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&lock);
		sum += i;
		HOROLOG_TRIGGER("row/step", i);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], 0, work, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], 0);
	printf("sum %ld\n", sum);
	return 7;
}
