import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    { title: 'without a key: 401', command: 'curl -s http://localhost:8080/', prints: /^api key authentication failure: no API Key found$/ },
    { title: 'with a key of the group sales', command: "curl -s -H 'Authorization: Bearer demo-key-alice' http://localhost:8080/", prints: /"name":"app"/ },
    {
      title: 'with a key of another group: 403',
      command: "curl -s -H 'Authorization: Bearer demo-key-bob' http://localhost:8080/",
      prints: /^authorization failed$/,
    },
  ],
} satisfies Example
