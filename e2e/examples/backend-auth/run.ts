import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    {
      title: 'the backend receives the credentials of the gateway',
      command: 'curl -s -H \'Authorization: Bearer key-of-ann\' http://localhost:8080/api | grep -o \'"authorization":"[^"]*"\'',
      prints: /^"authorization":"Bearer of-the-gateway"\n$/,
    },
    { title: 'without credentials: 401', command: "curl -s -o /dev/null -w '%{http_code}' http://localhost:8080/api", prints: /^401$/ },
  ],
} satisfies Example
