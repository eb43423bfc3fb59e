import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    { title: 'a plain connection', command: 'curl -s http://localhost:8080/', prints: /"name":"app"/ },
    { title: 'a connection with a PROXY header', command: 'curl -s --haproxy-protocol http://localhost:8080/', prints: /"name":"app"/ },
    {
      title: 'more headers than allowed: 431',
      command: 'curl -s -o /dev/null -w "%{http_code}" $(seq -f "-Hx-%g:1" 30) http://localhost:8080/',
      prints: /^431$/,
    },
  ],
} satisfies Example
