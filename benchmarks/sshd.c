/* Many SSH hosts on this machine: one process, a thread for each connection, by libssh.
 *
 *     cc -O2 -pthread -o sshd sshd.c -lssh && ./sshd HOST_KEY AUTHORISED_PUBLIC_KEY ROUND_TRIP_MS
 *
 * It answers at every address of the loopback and says its port. With ROUND_TRIP_MS above 0, what
 * the client says arrives so much later, as from hosts that are not here. Real hosts do not share the
 * client's processor, so these cost as little of it as they can: no process but the command's
 * own. Key exchange, login by public key, encryption and the command are real. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <libssh/server.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static ssh_key authorised;
static useconds_t far_us; /* so long is the way to a host and back */

struct host {
    ssh_session session;
    ssh_channel channel;
    ssh_event event;
    struct ssh_channel_callbacks_struct calls;
    pid_t child;
    int input;     /* what the command reads; -1 when it has its end */
    int output[2]; /* its stdout and stderr; -1 when they have ended */
    int closed;
};

static int on_key(ssh_session session, const char *user, struct ssh_key_struct *key, char signed_,
                  void *data) {
    (void)session, (void)user, (void)data;
    if (ssh_key_cmp(key, authorised, SSH_KEY_CMP_PUBLIC) != 0)
        return SSH_AUTH_DENIED;
    /* Without a signature the client only asks whether the key would do. */
    int good = signed_ == SSH_PUBLICKEY_STATE_NONE || signed_ == SSH_PUBLICKEY_STATE_VALID;
    return good ? SSH_AUTH_SUCCESS : SSH_AUTH_DENIED;
}

static int on_exec(ssh_session session, ssh_channel channel, const char *command, void *data) {
    struct host *host = data;
    int pipes[3][2];
    posix_spawn_file_actions_t actions;
    char *argv[] = {"sh", "-c", (char *)command, NULL};
    (void)session, (void)channel;
    if (host->child)
        return SSH_ERROR;
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; i++) {
        if (pipe2(pipes[i], O_CLOEXEC))
            abort();
        posix_spawn_file_actions_adddup2(&actions, pipes[i][i != 0], i);
    }
    if (posix_spawn(&host->child, "/bin/sh", &actions, NULL, argv, environ))
        abort();
    posix_spawn_file_actions_destroy(&actions);
    for (int i = 0; i < 3; i++)
        close(pipes[i][i != 0]);
    host->input = pipes[0][1], host->output[0] = pipes[1][0], host->output[1] = pipes[2][0];
    return SSH_OK;
}

static int on_data(ssh_session session, ssh_channel channel, void *bytes, uint32_t size, int err,
                   void *data) {
    struct host *host = data;
    (void)session, (void)channel, (void)err;
    for (uint32_t done = 0; host->input >= 0 && done < size;) {
        ssize_t count = write(host->input, (char *)bytes + done, size - done);
        if (count <= 0)
            break; /* the command does not read any more */
        done += count;
    }
    return (int)size;
}

static void end_input(struct host *host) {
    if (host->input >= 0)
        close(host->input);
    host->input = -1;
}

static void on_eof(ssh_session session, ssh_channel channel, void *data) {
    (void)session, (void)channel;
    end_input(data);
}

static void on_close(ssh_session session, ssh_channel channel, void *data) {
    (void)session, (void)channel;
    ((struct host *)data)->closed = 1;
}

static ssh_channel on_session(ssh_session session, void *data) {
    struct host *host = data;
    if (host->channel)
        return NULL; /* one command for a connection is all that is measured */
    host->calls.userdata = host;
    host->calls.channel_exec_request_function = on_exec;
    host->calls.channel_data_function = on_data;
    host->calls.channel_eof_function = on_eof;
    host->calls.channel_close_function = on_close;
    ssh_callbacks_init(&host->calls);
    host->channel = ssh_channel_new(session);
    ssh_set_channel_callbacks(host->channel, &host->calls);
    return host->channel;
}

static int on_output(socket_t descriptor, int events, void *data) {
    struct host *host = data;
    char room[16384];
    int which = descriptor == host->output[1];
    ssize_t count = read(descriptor, room, sizeof room);
    (void)events;
    if (count > 0 && which)
        ssh_channel_write_stderr(host->channel, room, count);
    else if (count > 0)
        ssh_channel_write(host->channel, room, count);
    if (count > 0)
        return SSH_OK;
    ssh_event_remove_fd(host->event, descriptor);
    close(descriptor);
    host->output[which] = -1;
    return SSH_ERROR; /* so the loop learns that its list has changed */
}

static void say_the_end(struct host *host) {
    int status;
    waitpid(host->child, &status, 0);
    end_input(host);
    ssh_channel_request_send_exit_status(host->channel,
                                         WIFEXITED(status) ? WEXITSTATUS(status) : 255);
    ssh_channel_send_eof(host->channel);
    ssh_channel_close(host->channel);
}

/* Wait until the client or the command says something; what the client says travels first. */
static void wait_for_words(struct host *host) {
    struct pollfd ways[] = {{.fd = ssh_get_fd(host->session), .events = POLLIN},
                            {.fd = host->output[0], .events = POLLIN},
                            {.fd = host->output[1], .events = POLLIN}};
    poll(ways, 3, -1);
    if (far_us && ways[0].revents)
        usleep(far_us);
}

static void carry_out(struct host *host) {
    int listening = 0, ended = 0;
    while (!host->closed && ssh_is_connected(host->session)) {
        wait_for_words(host);
        ssh_event_dopoll(host->event, 0);
        if (!host->child)
            continue;
        for (; listening < 2; listening++)
            ssh_event_add_fd(host->event, host->output[listening], POLLIN, on_output, host);
        if (!ended && host->output[0] < 0 && host->output[1] < 0)
            ended = 1, say_the_end(host);
    }
}

static void *serve(void *data) {
    struct host host = {.session = data, .input = -1, .output = {-1, -1}};
    struct ssh_server_callbacks_struct calls = {
        .userdata = &host,
        .auth_pubkey_function = on_key,
        .channel_open_request_session_function = on_session,
    };
    ssh_callbacks_init(&calls);
    ssh_set_server_callbacks(host.session, &calls);
    ssh_set_auth_methods(host.session, SSH_AUTH_METHOD_PUBLICKEY);
    ssh_set_blocking(host.session, 0);
    int agreed;
    do {
        wait_for_words(&host);
        agreed = ssh_handle_key_exchange(host.session);
    } while (agreed == SSH_AGAIN);
    if (agreed == SSH_OK) {
        host.event = ssh_event_new();
        ssh_event_add_session(host.event, host.session);
        carry_out(&host);
        ssh_event_free(host.event);
    }
    ssh_disconnect(host.session);
    ssh_free(host.session);
    return NULL;
}

int main(int count, char **words) {
    struct sockaddr_in place = {.sin_family = AF_INET};
    socklen_t size = sizeof place;
    pthread_attr_t slim;
    pthread_t thread;
    ssh_bind door = ssh_bind_new();
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    signal(SIGPIPE, SIG_IGN);
    far_us = count == 4 ? 1000 * atoi(words[3]) : 0;
    if (count != 4 || ssh_pki_import_pubkey_file(words[2], &authorised) != SSH_OK ||
        ssh_bind_options_set(door, SSH_BIND_OPTIONS_HOSTKEY, words[1]) != SSH_OK ||
        bind(server, (struct sockaddr *)&place, size) || listen(server, 4000) ||
        getsockname(server, (struct sockaddr *)&place, &size))
        return fprintf(stderr, "say HOST_KEY AUTHORISED_PUBLIC_KEY ROUND_TRIP_MS\n"), 2;
    printf("%d\n", ntohs(place.sin_port));
    fflush(stdout);
    pthread_attr_init(&slim);
    pthread_attr_setstacksize(&slim, 256 << 10);
    pthread_attr_setdetachstate(&slim, PTHREAD_CREATE_DETACHED);
    for (;;) {
        int line = accept4(server, NULL, NULL, SOCK_CLOEXEC);
        ssh_session session = ssh_new();
        setsockopt(line, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (line < 0 || ssh_bind_accept_fd(door, session, line) != SSH_OK ||
            pthread_create(&thread, &slim, serve, session))
            return perror("accept"), 1;
    }
}
