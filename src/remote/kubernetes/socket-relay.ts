/**
 * A command that runs in a pod and connects its stdin and stdout to a Unix socket there, with the first of these
 * programs that the image has. The program ends when the socket's other side ends, or when stdin ends. In none of them
 * does one direction wait for the other: a program that answers while it still reads would stop both. socat blocks in
 * this way, and nc does not end with the socket's other side.
 */
export function socketRelayCommand(socketPath: string): readonly string[] {
  return ['/bin/sh', '-c', script, 'sh', socketPath, python, node, perl];
}

const script = `if command -v python3 > /dev/null; then exec python3 -c "$2" "$1"
elif command -v node > /dev/null; then exec node -e "$3" "$1"
elif command -v perl > /dev/null; then exec perl -e "$4" "$1"
fi
echo "The image has none of python3, node and perl, so that $1 cannot be reached." >&2
exit 127`;

const python = `import os, socket, sys, threading
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
def send():
    try:
        data = os.read(0, 65536)
        while data:
            s.sendall(data)
            data = os.read(0, 65536)
        os._exit(0)
    except OSError: pass
threading.Thread(target=send, daemon=True).start()
data = s.recv(65536)
while data:
    while data: data = data[os.write(1, data):]
    data = s.recv(65536)
os._exit(0)
`;

// `process.stdout` of a pipe blocks, a socket on its descriptor does not. A pipe's end for writing cannot be read.
const node = `const { connect, Socket } = require('net');
const s = connect(process.argv[1]);
s.on('error', () => process.exit(1));
s.on('end', () => process.exitCode = 0);
s.on('close', () => process.stdin.destroy());
process.stdin.pipe(s); s.pipe(new Socket({ fd: 1, readable: false }));`;

const perl = `use IO::Socket::UNIX;
my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or exit 1;
my $parent = $$;
my $child = fork;
my ($from, $to) = $child ? ($s, \\*STDOUT) : (\\*STDIN, $s);
while (sysread($from, my $data, 65536)) {
  for (my $at = 0; $at < length $data;) { $at += syswrite($to, $data, length($data) - $at, $at) or exit 1 }
}
kill 'TERM', $child || $parent;`;
