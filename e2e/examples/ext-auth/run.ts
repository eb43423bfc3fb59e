import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'app', port: 9001 },
    { name: 'services', port: 9002, kind: 'services' },
    { name: 'login', port: 9003 },
  ],
  commands: [
    { title: 'the server denies a request', command: 'curl -s http://localhost:8080/', prints: /^who are you\?\n$/ },
    { title: 'the server allows a request and adds a header', command: "curl -s -H 'x-user: anna' http://localhost:8080/", prints: /"x-role":"admin"/ },
    {
      title: 'a rule uses the metadata of the server',
      command: "curl -s -o /dev/null -w '%{http_code}' -H 'x-user: bert' http://localhost:8080/admin",
      prints: /^403$/,
    },
    {
      title: 'a filter of one rule calls another server',
      command: "curl -s -o /dev/null -w '%{http_code}' 'http://localhost:8080/filter?status=401'",
      prints: /^401$/,
    },
  ],
} satisfies Example
