import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'app', port: 9001 },
    { name: 'services', port: 9002, kind: 'services' },
  ],
  commands: [
    { title: 'the upstream receives the changed body', command: "curl -s -d 'hello' http://localhost:8080/", prints: /"body":"HELLO"/ },
    { title: 'the client receives an added header', command: "curl -si http://localhost:8080/ | grep -i '^x-processed'", prints: /^x-processed: yes/i },
  ],
} satisfies Example
