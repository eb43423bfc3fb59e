import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'app', port: 9001 },
    { name: 'services', port: 9002, kind: 'services' },
    { name: 'login', port: 9003 },
  ],
  commands: [
    { title: 'the server denies', command: 'curl -s http://localhost:8080/', prints: /^who are you\?\n$/ },
    { title: 'and allows, and tells the upstream who it is', command: "curl -s -H 'x-user: anna' http://localhost:8080/", prints: /"x-role":"admin"/ },
    { title: 'a rule on what it said', command: "curl -s -o /dev/null -w '%{http_code}' -H 'x-user: bert' http://localhost:8080/admin", prints: /^403$/ },
    {
      title: 'another server for one rule, by a filter',
      command: "curl -s -o /dev/null -w '%{http_code}' 'http://localhost:8080/filter?status=401'",
      prints: /^401$/,
    },
  ],
} satisfies Example
