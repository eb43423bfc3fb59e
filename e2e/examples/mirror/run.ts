import type { Example } from '../../harness/example/example.ts'

// Nothing listens on 9009, the port of the third Service.
export default {
  upstreams: [
    { name: 'primary', port: 9001 },
    { name: 'shadow', port: 9002 },
  ],
  commands: [{ title: 'primary responds; the access log has one line', command: 'curl -s http://localhost:8080/order -d item=1', prints: /"name":"primary"/ }],
} satisfies Example
