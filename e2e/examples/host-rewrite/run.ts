import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    {
      title: 'a backend is asked by its own name',
      command: 'curl -s http://localhost:8080/external -H "Host: shop.example.com"',
      prints: /"host":"localhost"/,
    },
    { title: "a Service by the client's", command: 'curl -s http://localhost:8080/service -H "Host: shop.example.com"', prints: /"host":"shop\.example\.com"/ },
  ],
} satisfies Example
