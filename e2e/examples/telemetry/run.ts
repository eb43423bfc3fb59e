import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'app', port: 9001 },
    { name: 'collector', port: 9002 },
  ],
  commands: [
    {
      title: 'the upstream receives a traceparent',
      command: 'curl -s -H "x-user: ann" http://localhost:8080/shop/1',
      prints: /"traceparent":"00-[0-9a-f]{32}-[0-9a-f]{16}-01"/,
    },
  ],
} satisfies Example
