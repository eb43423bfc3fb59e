import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    { title: 'from this machine', command: 'curl -s http://127.0.0.1:8080/', prints: /"name":"app"/ },
    {
      title: 'from an address that is denied: 403',
      command: 'curl -s --interface 127.0.0.2 http://127.0.0.1:8080/',
      prints: /^client address not allowed$/,
    },
  ],
} satisfies Example
