import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    { title: 'the upstream receives the redacted number', command: "curl -s -d 'card 4111111111111111' http://localhost:8080/", prints: /card \*{12}1111/ },
  ],
} satisfies Example
