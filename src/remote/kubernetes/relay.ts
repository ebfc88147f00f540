/**
 * Connects its input and output to a Unix socket in the pod, with whatever of these the image has. Each ends when the socket's other side ends, or its
 * own input does.
 */
const script = `if command -v socat > /dev/null; then exec socat -t 60 STDIO "UNIX-CONNECT:$1"
elif command -v python3 > /dev/null; then exec python3 -c "$2" "$1"
elif command -v node > /dev/null; then exec node -e "$3" "$1"
elif command -v perl > /dev/null; then exec perl -e "$4" "$1"
elif nc -h 2>&1 | grep -q -e '-[^ ]*U'; then exec nc -U "$1"
fi
echo "The image has none of socat, python3, node, perl and nc with -U, so that $1 cannot be reached." >&2
exit 127`;

const python = `import os, select, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
while True:
    ready = select.select([0, s], [], [])[0]
    if 0 in ready:
        data = os.read(0, 65536)
        if not data: break
        s.sendall(data)
    if s in ready:
        data = s.recv(65536)
        if not data: break
        while data: data = data[os.write(1, data):]
`;

const node = `const s = require('net').connect(process.argv[1]);
s.on('error', () => process.exit(1));
s.on('end', () => process.exitCode = 0);
s.on('close', () => process.stdin.destroy());
process.stdin.pipe(s); s.pipe(process.stdout);`;

const perl = `use IO::Socket::UNIX; use IO::Select;
my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or exit 1;
my $both = IO::Select->new(\\*STDIN, $s);
while (1) { for my $from ($both->can_read) {
  sysread($from, my $data, 65536) or exit 0;
  my $to = $from == $s ? \\*STDOUT : $s;
  for (my $at = 0; $at < length $data;) { $at += syswrite($to, $data, length($data) - $at, $at) or exit 1 }
} }`;

/** The command that joins its input and output to a socket in the pod. */
export function relayCommand(socketPath: string): readonly string[] {
  return ['/bin/sh', '-c', script, 'sh', socketPath, python, node, perl];
}
