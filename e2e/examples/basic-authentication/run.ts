import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    {
      title: 'without credentials: 401 and a challenge',
      command: "curl -si http://localhost:8080/ | grep -i '^www-authenticate'",
      prints: /^www-authenticate: Basic realm="Example"/i,
    },
    { title: 'a bcrypt hash', command: 'curl -s -u bob:open-sesame http://localhost:8080/', prints: /"name":"app"/ },
    { title: 'an apr1 hash', command: 'curl -s -u alice:rabbit-hole http://localhost:8080/', prints: /"name":"app"/ },
  ],
} satisfies Example
