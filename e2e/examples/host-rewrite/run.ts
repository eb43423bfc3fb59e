import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    {
      title: 'a backend receives its own name as Host',
      command: 'curl -s http://localhost:8080/external -H "Host: shop.example.com"',
      prints: /"host":"localhost:9001"/,
    },
    {
      title: 'a Service receives the Host of the client',
      command: 'curl -s http://localhost:8080/service -H "Host: shop.example.com"',
      prints: /"host":"shop\.example\.com"/,
    },
  ],
} satisfies Example
