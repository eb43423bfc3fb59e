import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'catalog', port: 9001 },
    { name: 'orders', port: 9002 },
  ],
  commands: [
    { title: 'granted', command: 'curl -s http://localhost:8080/catalog', prints: /"name":"catalog"/ },
    { title: 'not granted', command: "curl -s -w ' %{http_code}\\n' http://localhost:8080/orders", prints: /backend does not exist 500/ },
  ],
} satisfies Example
