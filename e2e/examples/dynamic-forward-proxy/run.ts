import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    { title: 'a host that is allowed', command: 'curl -s -H "Host: localhost:9001" http://127.0.0.1:8080/', prints: /"name":"app"/ },
    {
      title: 'the same port by an address that is not',
      command: 'curl -s -H "Host: 127.0.0.1:9001" http://127.0.0.1:8080/',
      prints: /^destination not allowed$/,
    },
    { title: 'the gateway itself', command: 'curl -s -H "Host: localhost:8080" http://127.0.0.1:8080/', prints: /^destination not allowed$/ },
  ],
} satisfies Example
