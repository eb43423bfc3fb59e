import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    {
      title: 'a compressed response',
      command: "curl -s -o /dev/null -D - -H 'Accept-Encoding: gzip;q=0.5, br' 'http://localhost:8080/?size=100000&header=content-type:text/html'",
      prints: /content-encoding: br/i,
    },
    {
      title: 'the client decodes it',
      command: "curl -s --compressed 'http://localhost:8080/?size=100000&header=content-type:text/html' | wc -c",
      prints: /100000/,
    },
    {
      title: 'a compressed request',
      command: "echo hello | gzip | curl -s -H 'Content-Encoding: gzip' --data-binary @- http://localhost:8080/",
      prints: /"body":"hello/,
    },
    {
      title: 'an unknown coding: 415',
      command: "curl -s -o /dev/null -w '%{http_code}' -H 'Content-Encoding: lzw' -d x http://localhost:8080/",
      prints: /^415$/,
    },
  ],
} satisfies Example
