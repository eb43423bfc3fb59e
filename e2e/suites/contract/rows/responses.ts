import { BIG, FEW, MANY, PATTERN, repeat, REQUIRED, SMALL, some, traffic, UNSUPPORTED, type Row } from './row.ts'

const at = 'spec.traffic'
const rule = { match: { statusCodes: ['500'] }, response: { body: 'a' } }
const override = (first: object) => traffic({ responseOverride: { rules: [first] } })

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
