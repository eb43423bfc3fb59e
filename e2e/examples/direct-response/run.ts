import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    { title: 'a response of the gateway', command: "curl -s -w ' %{http_code}' http://localhost:8080/shop/cart", prints: /^closed until Monday 503$/ },
    { title: 'a response of the upstream', command: 'curl -s http://localhost:8080/', prints: /"name":"app"/ },
  ],
} satisfies Example
