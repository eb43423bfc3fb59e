import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'primary', port: 9001, kind: 'tcp' },
    { name: 'standby', port: 9002, kind: 'tcp' },
  ],
  commands: [
    {
      title: 'the upstream sends its name, then echoes the input',
      command: "bash -c 'exec 3<>/dev/tcp/127.0.0.1/8090; echo hello >&3; head -2 <&3'",
      prints: /primary\nhello/,
    },
  ],
} satisfies Example
