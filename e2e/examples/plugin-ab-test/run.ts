import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [{ title: 'a user and its variant', command: "curl -s -H 'x-user: ann' http://localhost:8080/", prints: /"x-variant":"(a|b)"/ }],
} satisfies Example
