import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'app', port: 9001 },
    { name: 'canary', port: 9002 },
  ],
  commands: [
    { title: 'a tester asks for the canary', command: "curl -s -H 'x-version: canary' -H 'x-user: ann' http://localhost:8080/", prints: /"name":"canary"/ },
    { title: 'others cannot', command: "curl -s -H 'x-version: canary' -H 'x-user: eve' http://localhost:8080/", prints: /"name":"app"/ },
  ],
} satisfies Example
