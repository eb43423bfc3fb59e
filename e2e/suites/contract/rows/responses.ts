import { BIG, FEW, MANY, PATTERN, repeat, REQUIRED, SMALL, some, traffic, UNSUPPORTED, type Row } from './row.ts'

const at = 'spec.traffic'
const rule = { match: { statusCodes: ['500'] }, response: { body: 'a' } }
const override = (first: object) => traffic({ responseOverride: { rules: [first] } })

const fault = (faultInjection: object) => traffic({ faultInjection })

/** Values of the policies that change responses. */
export const responseRows: Row[] = [
  [
    'compression with everything',
    traffic({ compression: { algorithms: ['gzip', 'br', 'zstd'], contentTypes: ['text/*', 'application/x+json'], minContentLength: 0 } }),
  ],
  ['compression with an unknown algorithm', traffic({ compression: { algorithms: ['deflate'] } }), `${at}.compression.algorithms[0]`, UNSUPPORTED],
  ['compression with no algorithms', traffic({ compression: { algorithms: [] } }), `${at}.compression.algorithms`, FEW],
  [
    'compression of a type with parameters',
    traffic({ compression: { contentTypes: ['text/html; charset=utf-8'] } }),
    `${at}.compression.contentTypes[0]`,
    PATTERN,
  ],
  ['compression of all types', traffic({ compression: { contentTypes: ['*/*'] } }), `${at}.compression.contentTypes[0]`, PATTERN],
  ['compression of 51 types', traffic({ compression: { contentTypes: repeat(51, (i) => `text/x${i}`) } }), `${at}.compression.contentTypes`, MANY],
  ['compression from -1 bytes', traffic({ compression: { minContentLength: -1 } }), `${at}.compression.minContentLength`, SMALL],
  [
    'faultInjection with everything',
    fault({
      delay: { duration: '1h', fraction: { numerator: 1, denominator: 1000 } },
      abort: { status: 400, grpcStatus: 16, percent: 0 },
      when: 'true',
    }),
  ],
  ['faultInjection of nothing', fault({ when: 'true' }), `${at}.faultInjection`, some('delay', 'abort')],
  ['faultInjection with a delay of 0', fault({ delay: { duration: '0s' } }), `${at}.faultInjection.delay.duration`, 'must be from 1ms to 1h'],
  ['faultInjection with a delay of 2h', fault({ delay: { duration: '2h' } }), `${at}.faultInjection.delay.duration`, 'must be from 1ms to 1h'],
  ['faultInjection without a duration', fault({ delay: { percent: 1 } }), `${at}.faultInjection.delay.duration`, REQUIRED],
  ['faultInjection with status 200', fault({ abort: { status: 200 } }), `${at}.faultInjection.abort.status`, SMALL],
  ['faultInjection with status 600', fault({ abort: { status: 600 } }), `${at}.faultInjection.abort.status`, BIG],
  ['faultInjection with grpcStatus 17', fault({ abort: { grpcStatus: 17 } }), `${at}.faultInjection.abort.grpcStatus`, BIG],
  ['faultInjection of 101 percent', fault({ abort: { percent: 101 } }), `${at}.faultInjection.abort.percent`, BIG],
  ['faultInjection of two shares', fault({ abort: { percent: 1, fraction: { numerator: 1 } } }), `${at}.faultInjection.abort`, 'at most one of the fields'],
  ['faultInjection of 101/100', fault({ abort: { fraction: { numerator: 101 } } }), `${at}.faultInjection.abort.fraction`, 'less than or equal to denominator'],
  ['requestBody of 0 bytes', traffic({ requestBody: { maxSize: 0 } })],
  ['requestBody without maxSize', traffic({ requestBody: {} }), `${at}.requestBody.maxSize`, REQUIRED],
  ['requestBody of 4 GiB', traffic({ requestBody: { maxSize: 4294967296 } }), `${at}.requestBody.maxSize`, BIG],
  [
    'bandwidthLimit with everything',
    traffic({ bandwidthLimit: { request: { bytesPerSecond: 1024 }, response: { bytesPerSecond: 4294967295 }, scope: 'Request' } }),
  ],
  ['bandwidthLimit of nothing', traffic({ bandwidthLimit: { scope: 'Target' } }), `${at}.bandwidthLimit`, some('request', 'response')],
  ['bandwidthLimit of 1023', traffic({ bandwidthLimit: { request: { bytesPerSecond: 1023 } } }), `${at}.bandwidthLimit.request.bytesPerSecond`, SMALL],
  ['decompression with everything', traffic({ decompression: { maxSize: 4294967295 } })],
  ['decompression to 0 bytes', traffic({ decompression: { maxSize: 0 } }), `${at}.decompression.maxSize`, SMALL],
  [
    'responseOverride with everything',
    override({
      match: { statusCodes: ['404', '500-599'], headers: [{ name: 'x-a' }, { name: 'x-b', value: '' }], condition: 'true' },
      response: { status: 200, contentType: 'text/html', bodyRef: { name: 'm', key: 'k' }, headers: [{ name: 'x-c', value: '1' }] },
    }),
  ],
  ['responseOverride by redirect', override({ match: { condition: 'true' }, redirect: { location: 'https://a.example/?x=1', status: 303 } })],
  ['responseOverride by redirect to a path', override({ match: { condition: 'true' }, redirect: { location: '/sorry' } })],
  ['responseOverride without rules', traffic({ responseOverride: { rules: [] } }), `${at}.responseOverride.rules`, FEW],
  ['responseOverride with 17 rules', traffic({ responseOverride: { rules: repeat(17, () => rule) } }), `${at}.responseOverride.rules`, MANY],
  ['responseOverride without match', override({ response: {} }), `${at}.responseOverride.rules[0].match`, REQUIRED],
  [
    'responseOverride of everything',
    override({ match: {}, response: {} }),
    `${at}.responseOverride.rules[0].match`,
    some('statusCodes', 'headers', 'condition'),
  ],
  ['responseOverride without response', override({ match: rule.match }), `${at}.responseOverride.rules[0]`, 'exactly one of the fields'],
  [
    'responseOverride with response and redirect',
    override({ ...rule, redirect: { location: '/' } }),
    `${at}.responseOverride.rules[0]`,
    'exactly one of the fields',
  ],
  [
    'responseOverride with two bodies',
    override({ ...rule, response: { body: 'a', bodyRef: { name: 'm', key: 'k' } } }),
    `${at}.responseOverride.rules[0].response`,
    'at most one of the fields',
  ],
  ['responseOverride of status 100', override({ ...rule, match: { statusCodes: ['100'] } }), `${at}.responseOverride.rules[0].match.statusCodes[0]`, PATTERN],
  [
    'responseOverride of a reversed range',
    override({ ...rule, match: { statusCodes: ['599-500'] } }),
    `${at}.responseOverride.rules[0].match.statusCodes[0]`,
    'must not be above the second',
  ],
  ['responseOverride of status 5xx', override({ ...rule, match: { statusCodes: ['5xx'] } }), `${at}.responseOverride.rules[0].match.statusCodes[0]`, PATTERN],
  ['responseOverride with status 600', override({ ...rule, response: { status: 600 } }), `${at}.responseOverride.rules[0].response.status`, BIG],
  [
    'responseOverride with a header of two lines',
    override({ ...rule, response: { headers: [{ name: 'x', value: 'a\nb' }] } }),
    `${at}.responseOverride.rules[0].response.headers[0].value`,
    PATTERN,
  ],
  [
    'responseOverride to another host without scheme',
    override({ match: rule.match, redirect: { location: '//evil.example' } }),
    `${at}.responseOverride.rules[0].redirect.location`,
    PATTERN,
  ],
  [
    'responseOverride to a script',
    override({ match: rule.match, redirect: { location: 'javascript:x' } }),
    `${at}.responseOverride.rules[0].redirect.location`,
    PATTERN,
  ],
]
