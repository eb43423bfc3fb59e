import { randomUUID } from 'node:crypto'
import { isIP } from 'node:net'
import { describe, expect, test } from '@jest/globals'
import { fc } from '../property-testing.ts'
import { Ip } from './address.ts'
import { CelError } from './error.ts'
import { HeaderView } from './headers.ts'
import { toHost } from './host.ts'
import { compilePermissive } from './program.ts'
import { UriText } from './uri.ts'
import { Secret } from './values.ts'

const context = {
  request: {
    method: 'GET',
    path: '/v1/users/42',
    uri: new UriText('http://a.example/p?a=1&b=x%20y&a=2'),
    pathAndQuery: new UriText('/p'),
    headers: new HeaderView({
      raw: ['authorization', 'Bearer t', 'x-one', 'a', 'x-two', 'p,q', 'x-two', 'r', 'cookie', 'sid=abc; theme="dark"', 'cookie', 'late=1'],
    }),
    body: Buffer.from('{"model":"m","n":3,"half":1.5,"tags":["x","y"],"constructor":{"a":1}}'),
  },
  source: { address: Ip.fromSocket('::ffff:10.1.2.3') },
  jwt: { sub: 'alice', groups: ['dev', 'admin'], level: 3, none: null, rawToken: new Secret('eyJ') },
  apiKey: { key: new Secret('k-123'), group: 'sales' },
}

function run(source: string): unknown {
  const { program, problems } = compilePermissive(source, { entropy: { random: () => Math.random(), uuid: () => randomUUID() } })
  expect(problems).toEqual([])
  const value = program.eval(context)
  return value instanceof CelError ? `${value.code}: ${value.message}` : toHost(value)
}

/** Expressions and their results in the context above, converted for the host; errors as `code: message`. */
const rows: Readonly<Record<string, readonly (readonly [source: string, result: unknown])[]>> = {
  'JSON numbers are ints if integral, otherwise doubles': [
    ['type(json(request.body).n) == int', true],
    ['type(json(request.body).half) == double', true],
    ['json(request.body).n + 1', 4],
    ['json(request.body).n == 3 && json(request.body).n == 3.0 && json(request.body).n < 4', true],
    ['type([1.0][0]) == double && type({"a": 2.0}.a) == double', true],
    ['cel.bind(x, 2.0, type(x) == double)', true],
    ['[1.0, 2.0].map(x, type(x) == double)', [true, true]],
    ['type([3.0].filter(x, true)[0]) == double', true],
  ],
  'only own properties are members': [
    ['has(jwt.constructor) || has(jwt.__proto__) || has(jwt.toString)', false],
    ['jwt.constructor', 'no_such_key: no such key "constructor"'],
    ['json(request.body).constructor.a', 1],
    ['"length" in json(request.body).tags', false],
    ['has(request.body.length)', 'no_such_overload: the value has no members'],
    ['jwt["__proto__"]', 'no_such_key: no such key "__proto__"'],
  ],
  'header lookup ignores case, and header views change the form of values': [
    ['request.headers["X-One"]', 'a'],
    ['request.headers["x-two"]', ['p,q', 'r']],
    ['request.headers.join()["x-two"]', 'p,q, r'],
    ['request.headers.raw()["x-one"]', ['a']],
    ['request.headers.split()["X-Two"]', ['p', 'q', 'r']],
    ['request.headers.redacted()["Authorization"]', '<redacted>'],
    ['request.headers.redacted().join()["authorization"]', '<redacted>'],
    ['toJson(request.headers.redacted()).contains("Bearer")', false],
    ['request.headers["authorization"]', 'Bearer t'],
    ['"X-One" in request.headers && !("x-none" in request.headers)', true],
    ['has(request.headers.cookie)', true],
    ['request.headers.cookie("theme")', 'dark'],
    ['request.headers.cookie("late")', '1'],
    ['request.headers.cookie("none")', 'no_such_key: no such key'],
    ['request.headers["x-none"]', 'no_such_key: no such key "x-none"'],
    ['request.headers.exists(name, name == "x-one")', true],
    ['size(request.headers)', 4],
  ],
  'URIs are strings with accessors for the query': [
    ['request.uri.query("a")', ['1', '2']],
    ['request.uri.query("b")', ['x y']],
    ['request.uri.query("c")', 'no_such_key: no such key'],
    ['default(request.uri.query("c")[0], "none")', 'none'],
    ['request.uri.addQuery("c", "&")', 'http://a.example/p?a=1&b=x%20y&a=2&c=%26'],
    ['request.uri.setQuery("a", "3").addQuery("d", "4")', 'http://a.example/p?b=x%20y&a=3&d=4'],
    ['request.pathAndQuery.addQuery("a", "1")', '/p?a=1'],
    ['request.pathAndQuery == "/p" && request.pathAndQuery.startsWith("/") && request.pathAndQuery + "!" == "/p!"', true],
    ['request.pathAndQuery in ["/p"] && type(request.pathAndQuery) == string', true],
  ],
  'secrets are redacted until unredacted': [
    ['apiKey.key', '<redacted>'],
    ['string(apiKey.key) + "!"', '<redacted>!'],
    ['toJson(apiKey)', '{"key":"<redacted>","group":"sales"}'],
    ['apiKey.key.unredacted()', 'k-123'],
    ['apiKey.key == "k-123" && apiKey.key != "k-124" && "k-123" == apiKey.key', true],
    ['apiKey.key.startsWith("k")', 'no_such_overload: startsWith() does not take these types'],
    ['apiKey.key + "x"', 'no_such_overload: + does not apply to these types'],
    ['"%s".format([jwt.rawToken])', '<redacted>'],
    ['sha256.encode(apiKey.key)', 'no_such_overload: encode() does not take these types'],
  ],
  'default and coalesce replace missing values and no other errors': [
    ['default(request.headers["x-none"], "d")', 'd'],
    ['default(jwt.none, "d")', 'd'],
    ['default(unknown.member, "d")', 'd'],
    ['default(jwt.sub, "d")', 'alice'],
    ['default(1 / 0, 7)', 'divide_by_zero: division by zero'],
    ['coalesce(jwt.none, jwt.missing, "c")', 'c'],
    ['coalesce(1 / 0, jwt.sub)', 'alice'],
    ['coalesce(null, null)', null],
    ['coalesce(json("{"), "c")', 'unreadable: not JSON, over a limit, or an object repeats a name'],
    ['default([{}].map(m, m.a), "d")', 'd'],
    ['coalesce(null, 1 / 0)', 'divide_by_zero: division by zero'],
  ],
  'bindings and maps have their methods': [
    ['jwt.groups.with(g, g.size() + size(g[0]))', 5],
    ['{"a": 1, "b": 2}.mapValues(v, v * 2)', { a: 2, b: 4 }],
    ['{"a": 1, "b": 2}.filterKeys(k, k != "a")', { b: 2 }],
    ['{"a": 1, "k": "v"}.merge({"a": 3})', { a: 3, k: 'v' }],
    ['has(variables().jwt) && variables().request.method == "GET"', true],
    ['jwt.groups.sortBy(g, g)', ['admin', 'dev']],
    ['[3, 1, 2].sort() == [1, 2, 3] && [1, 1, 2].distinct() == [1, 2] && lists.range(3) == [0, 1, 2]', true],
    ['[[1], [2, [3]]].flatten() == [1, 2, [3]] && [1, 2, 3].slice(1, 2) == [2] && [1, 2].reverse() == [2, 1]', true],
    ['jwt.?missing.orValue("x") + jwt.?sub.orValue("x")', 'xalice'],
    ['{?"a": jwt.?missing, ?"b": jwt.?sub}', { b: 'alice' }],
    ['jwt.groups[?5].hasValue()', false],
  ],
  'json and token functions parse': [
    ['json("[1, 2.5]")', [1, 2.5]],
    ['json("{")', 'unreadable: not JSON, over a limit, or an object repeats a name'],
    ['jsonField(request.body, "model")', 'm'],
    ['jsonField(request.body, "none")', 'no_such_key: no such key'],
    ['toJson({"a": [1, 1.5, null, true, "x"]})', '{"a":[1,1.5,null,true,"x"]}'],
    ['to_json(9007199254740993)', '9007199254740993'],
    ['json("9007199254740993") == 9007199254740993', true],
    ['json("9007199254740993") == 9007199254740992', false],
    ['json(b"{\\"id\\":-9223372036854775808}").id == -9223372036854775808', true],
    ['json("18446744073709551615") == 18446744073709551615u', true],
    ['type(json("18446744073709551616"))', 'double'],
    ['type(json("9007199254740993.5"))', 'double'],
    ['string(json("{\\"id\\": 9007199254740993}").id)', '9007199254740993'],
    ['toJson(json("{\\"id\\":9007199254740993,\\"u\\":18446744073709551615}"))', '{"id":9007199254740993,"u":18446744073709551615}'],
    ['toJson(json("{\\"id\\":9007199254740993}").merge({"seen":true}))', '{"id":9007199254740993,"seen":true}'],
    ['unvalidatedJwtPayload("e30.eyJzdWIiOiJhIn0.x").sub', 'a'],
    ['unvalidatedJwtPayload("eyJzdWIiOiJhIn0.x")', 'invalid_argument: invalid argument'],
  ],
  'encoders and hashes convert': [
    ['base64.encode("hello") + base64.encode(b"\\xff")', 'aGVsbG8=/w=='],
    ['string(base64.decode("aGVsbG8")) + string(base64Decode("aGVsbG8="))', 'hellohello'],
    ['base64.decode("a b")', 'invalid_argument: invalid argument'],
    ['url.encode("a b/ä") + url.decode("%2Fx")', 'a%20b%2F%C3%A4/x'],
    ['url.decode("%")', 'invalid_argument: invalid argument'],
    ['form.encode({"b": [1, 2], "a": "x y", "n": null})', 'a=x+y&b=1&b=2'],
    ['form.decode("a=1&b=x+y&a=2")', { a: ['1', '2'], b: 'x y' }],
    ['sha1.encode("a")', '86f7e437faa5a7fce15d1ddcb9eaeaea377667b8'],
    ['sha256.encode(b"a")', 'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb'],
    ['md5.encode("a")', '0cc175b9c0f1b6a831c399e269772661'],
    ['uuid().matches("^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$") && uuid() != uuid()', true],
    ['random() >= 0.0 && random() < 1.0', true],
  ],
  'strings are matched, replaced and cut': [
    ['"/path/1/id/499c81c2/bar".regexReplace("/id/([0-9a-z]{8})/", "/id/<${1}$1>/")', '/path/1/id/<499c81c2499c81c2>/bar'],
    ['"aaa".regexReplace("a", "b")', 'baa'],
    ['"abc".regexReplace("x", "y")', 'abc'],
    ['"price".regexReplace("p", "$$")', '$rice'],
    ['request.path.matches("users/[0-9]+") && !request.path.matches("^users")', true],
    ['matches("abc", "^a.c$")', true],
    ['["b", "(c"].map(p, "abc".matches(p))', 'invalid_argument: invalid argument'],
    ['"a-b".stripPrefix("a-") + "a-b".stripSuffix("-b") + "x".stripSuffix("")', 'bax'],
    ['"👍a".charAt(0) + "👍a".substring(1) + string("a👍b".indexOf("b"))', '👍a2'],
    ['size("👍") == 1 && "👍b".reverse() == "b👍"', true],
  ],
  'addresses and networks are parsed and compared': [
    ['source.address == "10.1.2.3" && string(source.address) == "10.1.2.3"', true],
    ['cidr("10.0.0.0/8").containsIP(source.address) && !cidr("11.0.0.0/8").containsIP("10.1.2.3")', true],
    ['cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16") && !cidr("10.1.0.0/16").containsCIDR(cidr("10.0.0.0/8"))', true],
    ['string(cidr("10.1.2.3/8").masked()) + " " + string(cidr("10.1.2.3/8").ip()) + " " + string(cidr("10.1.2.3/8").prefixLength())', '10.0.0.0/8 10.1.2.3 8'],
    ['ip("::1").family() == 6 && ip("::1").isLoopback() && ip("fe80::1").isLinkLocalUnicast()', true],
    ['ip("ff02::1").isLinkLocalMulticast() && ip("::").isUnspecified() && ip("2001:db8::abcd").isGlobalUnicast()', true],
    ['ip("127.0.0.1").isGlobalUnicast() || ip("255.255.255.255").isGlobalUnicast() || ip("224.0.0.1").isGlobalUnicast()', false],
    ['isIP("1.2.3") || isIP("01.2.3.4") || isIP("fe80::1%eth0") || isIP("::ffff:1.2.3.4")', false],
    ['string(ip("2001:DB8:0:0:1:0:0:1"))', '2001:db8::1:0:0:1'],
    ['ip("nonsense")', 'invalid_argument: invalid argument'],
    ['cidr("10.0.0.0/33")', 'invalid_argument: invalid argument'],
  ],
  'timestamps and durations are parsed and compared': [
    ['timestamp("2024-02-29T12:30:00Z").getHours("Europe/Berlin")', 13],
    ['timestamp("2024-07-01T12:30:00+02:00").getHours("America/New_York")', 6],
    ['timestamp("2024-02-29T12:30:00Z").getHours("Nowhere/Land")', 'invalid_argument: invalid argument'],
    ['timestamp("2023-02-29T00:00:00Z")', 'invalid_argument: invalid argument'],
    ['string(timestamp("2024-01-01T00:00:00.5Z") + duration("1h0.25s"))', '2024-01-01T01:00:00.75Z'],
    ['duration("90m") > duration("1h") && duration("-1.5s").getMilliseconds() == -500', true],
    ['timestamp(0) < timestamp("2024-01-01T00:00:00Z")', true],
    ['max(1, 3, 2) + min([5, 4])', 7],
  ],
  'errors are values that && and || absorb': [
    ['request.headers["x-none"] == "a" || true', true],
    ['request.headers["x-none"] == "a" && false', false],
    ['false || jwt.missing', 'no_such_key: no such key "missing"'],
    ['[1, 0].exists(x, 2 / x == 2)', true],
    ['fail("because") || true', true],
    ['fail("because")', 'failed: because'],
    ['fail(jwt.sub)', 'failed: fail() was called'],
    ['9223372036854775807 + 1', 'overflow: the result is out of range'],
    ['undeclared_thing', 'undeclared: "undeclared_thing" is not set'],
  ],
}

describe('in expressions', () => {
  for (const [title, cases] of Object.entries(rows)) {
    test(title, () => {
      for (const [source, result] of cases) expect([source, run(source)]).toEqual([source, result])
    })
  }

  test('results for the host are copies with plain values', () => {
    const { program } = compilePermissive('[jwt, 1u, 1.0, b"x", duration("1s"), optional.none(), 9223372036854775807, ip("::1"), int]')
    const result = toHost(program.eval({ jwt: context.jwt })) as unknown[]
    expect(result).toEqual([{ ...context.jwt, rawToken: '<redacted>' }, 1, 1, new Uint8Array([120]), '1s', null, '9223372036854775807', '::1', 'int'])
    expect(result[0]).not.toBe(context.jwt)
    expect(Object.getPrototypeOf(result[0])).toBeNull()
  })

  test.each([
    ['random()', 0.25],
    ['uuid()', '4ba3b0c1-6b3e-4f0a-9a53-2d2f0b7f9c1e'],
  ])('%s returns the value of the environment, and fails without one', (source, expected) => {
    const entropy = { random: () => 0.25, uuid: () => '4ba3b0c1-6b3e-4f0a-9a53-2d2f0b7f9c1e' }
    expect(compilePermissive(source, { entropy }).program.eval({})).toBe(expected)
    const { program, problems } = compilePermissive(source)
    expect(problems).toEqual([])
    expect(program.eval({})).toMatchObject({ code: 'failed', message: 'no randomness is available here' })
  })

  test('property: addresses are those of node:net, except zones and IPv4 within IPv6', () => {
    const texts = fc.oneof(fc.ipV4(), fc.ipV6(), fc.stringMatching(/^[0-9a-f:.]{1,20}$/))
    fc.assert(
      fc.property(texts, (text) => {
        const ip = Ip.parse(text)
        if (text.includes(':') && text.includes('.')) return ip === undefined
        if (/^[0:]*:ffff:[0-9a-f]+:[0-9a-f]+$/.test(text)) return true
        return ip === undefined ? isIP(text) === 0 : isIP(text) === ip.family && Ip.parse(ip.toString())?.value === ip.value
      }),
    )
  })
})
