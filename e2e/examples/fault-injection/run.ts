import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    { title: 'a request without faults', command: 'curl -s http://localhost:8080/', prints: /"name":"app"/ },
    {
      title: 'requests of a test: one in two fails',
      command: "curl -s -o /dev/null -w '%{http_code}' -H 'x-test: resilience' http://localhost:8080/",
      prints: /^(200|503)$/,
    },
  ],
} satisfies Example
