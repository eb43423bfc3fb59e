import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    {
      title: 'the prefix is removed and the Host replaced',
      command: "curl -s 'http://localhost:8080/api/users?x=1'",
      prints: /"path":"\/users\?x=1","host":"app\.internal"/,
    },
    { title: 'one path for all paths below /health', command: 'curl -s http://localhost:8080/health/live', prints: /"path":"\/status.txt"/ },
  ],
} satisfies Example
