import type { Example } from '../../harness/example/example.ts'

// Nothing listens on 9009, where the manifests' third Service points.
export default {
  upstreams: [
    { name: 'primary', port: 9001 },
    { name: 'shadow', port: 9002 },
  ],
  commands: [
    { title: 'answered by primary; the access log shows one request', command: 'curl -s http://localhost:8080/order -d item=1', prints: /"name":"primary"/ },
  ],
} satisfies Example
