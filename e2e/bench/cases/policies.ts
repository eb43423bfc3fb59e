import { createSign, generateKeyPairSync } from 'node:crypto'
import { alternate, inSeconds, start, type Alternated, type Case, type StartedProxy } from '../bench.ts'
import { judge } from '../measure.ts'
import { wrk, type Throughput } from './throughput.ts'

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const unsigned = `${encode({ alg: 'RS256', kid: 'bench' })}.${encode({ iss: 'https://idp.example.com', aud: 'api', sub: 'ann', groups: ['dev'], exp: 4_000_000_000 })}`
const token = `${unsigned}.${createSign('sha256').update(unsigned).sign(privateKey, 'base64url')}`
const keySet = JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'bench', alg: 'RS256' }] })

const prefix = (path: string) => [{ path: { type: 'PathPrefix', value: path } }]
/** The policies of a typical API route. */
const full = {
  name: 'full',
  matches: prefix('/full'),
  policies: {
    jwtAuthentication: { providers: [{ issuer: 'https://idp.example.com', audiences: ['api'], jwks: { inline: keySet } }] },
    authorization: { policy: { matchExpressions: ['jwt.sub == "bob"', '"ops" in jwt.groups', 'request.method == "GET" && "dev" in jwt.groups'] } },
    rateLimit: { local: [{ requests: 4_000_000_000, unit: 'Seconds' }] },
    headerModifiers: {
      request: { set: [{ name: 'x-team', value: 'shop' }], add: [{ name: 'x-via', value: 'gateway' }] },
      response: { set: [{ name: 'x-frame-options', value: 'DENY' }], remove: ['server'] },
    },
  },
}
/** Ten rules, of which only the last matches. */
const tenRules = {
  name: 'ten',
  matches: prefix('/ten'),
  policies: {
    authorization: {
      policy: { matchExpressions: [...Array(9).keys()].map((n) => `request.headers["x-team"] == "t${n}"`).concat('request.method == "GET"') },
    },
  },
}

const headers = { authorization: `Bearer ${token}`, 'x-team': 'none' }

/** The cost of policies: a route with policies against a route without, in one process, and that route against a process without policies. */
export const policies: Case = {
  name: 'policies',
  async run(bench) {
    const bare = await start(bench, 'ours', { routes: 10 })
    const ours = await start(bench, 'ours', { routes: 10, rules: [full, tenRules] })
    const fine = inSeconds(bench)
    const compare = (proxy: StartedProxy, path: string, peer: StartedProxy): Promise<Alternated<keyof Throughput>> =>
      alternate(
        fine,
        () => wrk(fine, proxy, path, headers),
        () => wrk(fine, peer, '/route-5/x', headers),
      )
    try {
      const all = await compare(ours, '/full/x', bare)
      const ten = await compare(ours, '/ten/x', bare)
      const none = await compare(ours, '/route-5/x', bare)
      const rate = (name: string, { a, b, ratio }: typeof all, atLeast: number) =>
        judge({ case: name, ours: a.rate, peer: b.rate, ratio: ratio.rate, peerName: 'ours, no policies', unit: 'requests/s' }, { atLeast })
      return [
        rate('JWT, 3 rules, limit, 4 header edits', all, 0.75),
        rate('ten Allow rules', ten, 0.9),
        judge(
          {
            case: 'policies elsewhere, CPU',
            ours: none.a.cpuMicros,
            peer: none.b.cpuMicros,
            ratio: none.ratio.cpuMicros,
            peerName: 'ours, no policies',
            unit: 'µs CPU/request',
          },
          { atMost: 1.05 },
        ),
      ]
    } finally {
      await ours.stop()
      await bare.stop()
    }
  },
}
