import type { Phase } from './environment.ts'
import { phasesOf, variableRows } from './environment.ts'

/** Documentation of a variable or of a member of one. */
export interface VariableDoc {
  /** Such as `request.method`; `<key>` stands for any key. */
  readonly name: string
  readonly type: string
  readonly description: string
  /** Where it may be used. */
  readonly phases: readonly Phase[]
}

/** Documentation of a function, a macro or a method. */
export interface FunctionDoc {
  /** Such as `size`, `base64.encode`. */
  readonly name: string
  /** Called as `x.name()`. */
  readonly isMethod: boolean
  readonly signature: string
  readonly description: string
}

/** Signatures with their descriptions. A signature that begins with `x.` is that of a method. */
const functionRows: readonly (readonly [signature: string, description: string])[] = [
  ['has(e.field)', 'Whether the member exists'],
  ['default(e, fallback)', 'The fallback if e is null or does not exist'],
  ['coalesce(e1, e2, …)', 'The first value that is neither null nor an error'],
  ['cel.bind(v, value, e)', 'e with the variable v'],
  ['variables()', 'Map of all variables that are set; buffers bodies'],
  ['fail(message)', 'An error'],
  ['random()', 'A number from 0 to 1'],
  ['uuid()', 'A random UUID, version 4'],
  ['size(v)', 'Length of a string, bytes, a list or a map'],
  ['type(v)', 'The type'],
  ['dyn(v)', 'The value itself'],
  ['bool(v)', 'Converts to bool'],
  ['bytes(v)', 'Converts to bytes'],
  ['double(v)', 'Converts to double'],
  ['duration(text)', 'A duration, such as `1m30s`'],
  ['int(v)', 'Converts to int'],
  ['string(v)', 'Converts to string'],
  ['timestamp(text)', 'A timestamp of RFC 3339'],
  ['uint(v)', 'Converts to uint'],
  ['matches(text, pattern)', 'Whether a part of the text matches (RE2)'],
  ['json(v)', 'Parses JSON'],
  ['toJson(v)', 'JSON text'],
  ['to_json(v)', 'JSON text'],
  ['jsonField(v, key)', 'A top-level member of JSON text'],
  ['unvalidatedJwtPayload(token)', 'Claims of a token whose signature is not verified'],
  ['base64.encode(v)', 'Base64 of a string or bytes'],
  ['base64.decode(text)', 'Bytes; padding is optional'],
  ['base64Encode(v)', 'Base64 of a string or bytes'],
  ['base64Decode(text)', 'Bytes; padding is optional'],
  ['url.encode(text)', 'Percent-encodes a component'],
  ['url.decode(text)', 'Decodes a component'],
  ['form.encode(map)', 'A form body; keys are sorted'],
  ['form.decode(text)', 'Map of the fields of a form body'],
  ['sha1.encode(v)', 'SHA-1 as lowercase hex'],
  ['sha256.encode(v)', 'SHA-256 as lowercase hex'],
  ['md5.encode(v)', 'MD5 as lowercase hex'],
  ['flatten(v)', 'One field per member; in logs and traces only'],
  ['flattenRecursive(v)', 'One field per member of every level; in logs and traces only'],
  ['lists.range(n)', 'List of 0 to n - 1'],
  ['strings.quote(text)', 'The text as a CEL literal'],
  ['optional.of(v)', 'An optional with a value'],
  ['optional.none()', 'An empty optional'],
  ['optional.ofNonZeroValue(v)', 'An optional; empty for zero values'],
  ['max(a, b, …)', 'The greatest argument'],
  ['min(a, b, …)', 'The least argument'],
  ['math.greatest(a, b, …)', 'The greatest argument'],
  ['math.least(a, b, …)', 'The least argument'],
  ['math.ceil(x)', 'Rounds up'],
  ['math.floor(x)', 'Rounds down'],
  ['math.round(x)', 'Rounds to the nearest integer'],
  ['math.trunc(x)', 'Removes the fraction'],
  ['math.abs(x)', 'Absolute value'],
  ['math.sign(x)', '-1, 0 or 1'],
  ['math.sqrt(x)', 'Square root'],
  ['math.isInf(x)', 'Whether x is infinite'],
  ['math.isNaN(x)', 'Whether x is NaN'],
  ['math.isFinite(x)', 'Whether x is finite'],
  ['math.bitAnd(a, b)', 'Bits set in both'],
  ['math.bitOr(a, b)', 'Bits set in either'],
  ['math.bitXor(a, b)', 'Bits set in one of them'],
  ['math.bitNot(a)', 'Inverted bits'],
  ['math.bitShiftLeft(a, n)', 'Shifts to the left'],
  ['math.bitShiftRight(a, n)', 'Shifts to the right'],
  ['isIP(text)', 'Whether the text is an address'],
  ['isCIDR(text)', 'Whether the text is a CIDR'],
  ['ip(text)', 'An address'],
  ['ip.isCanonical(text)', 'Whether the address is written in its canonical form'],
  ['cidr(text)', 'A range of addresses'],
  ['x.family()', '4 or 6'],
  ['x.isUnspecified()', 'Whether the address is 0.0.0.0 or ::'],
  ['x.isLoopback()', 'Whether the address is a loopback address'],
  ['x.isLinkLocalMulticast()', 'Whether the address is link-local multicast'],
  ['x.isLinkLocalUnicast()', 'Whether the address is link-local unicast'],
  ['x.isGlobalUnicast()', 'Whether the address is global unicast'],
  ['x.containsIP(ip)', 'Whether the range contains the address'],
  ['x.containsCIDR(cidr)', 'Whether the range contains the other one'],
  ['x.ip()', 'Address of the range'],
  ['x.masked()', 'The range with host bits cleared'],
  ['x.prefixLength()', 'Length of the prefix'],
  ['x.size()', 'Length of a string, bytes, a list or a map'],
  ['x.startsWith(text)', 'Whether it begins with the text'],
  ['x.endsWith(text)', 'Whether it ends with the text'],
  ['x.contains(text)', 'Whether it contains the text'],
  ['x.matches(pattern)', 'Whether a part of it matches (RE2)'],
  ['x.base64Encode()', 'Base64 of a string or bytes'],
  ['x.base64Decode()', 'Bytes; padding is optional'],
  ['x.hasValue()', 'Whether the optional has a value'],
  ['x.value()', 'Value of the optional'],
  ['x.or(optional)', 'The other optional if this one is empty'],
  ['x.orValue(v)', 'v if the optional is empty'],
  ['x.optMap(v, e)', 'e of the value v of the optional'],
  ['x.optFlatMap(v, e)', 'The optional e of the value v of the optional'],
  ['x.unredacted()', 'Text of a secret'],
  ['x.charAt(i)', 'Character at an index'],
  ['x.indexOf(text)', 'Index of the first occurrence, or -1'],
  ['x.lastIndexOf(text)', 'Index of the last occurrence, or -1'],
  ['x.substring(from, to)', 'Part of a text'],
  ['x.replace(from, to)', 'Replaces every occurrence'],
  ['x.regexReplace(pattern, by)', 'Replaces the first match (RE2); `$1` is a group'],
  ['x.split(separator)', 'List of the parts'],
  ['x.join(separator)', 'Text of all elements; of a header: its values'],
  ['x.lowerAscii()', 'Lowercase'],
  ['x.upperAscii()', 'Uppercase'],
  ['x.trim()', 'Without white space at both ends'],
  ['x.format(list)', 'Replaces `%s`, `%d` and others'],
  ['x.stripPrefix(text)', 'Without the prefix'],
  ['x.stripSuffix(text)', 'Without the suffix'],
  ['x.slice(from, to)', 'Part of a list'],
  ['x.distinct()', 'List without repeated elements'],
  ['x.sort()', 'Sorted list'],
  ['x.sortBy(v, e)', 'List sorted by e of each element v'],
  ['x.reverse()', 'List or text in reverse order'],
  ['x.flatten()', 'Elements of the lists in a list; of a map: one field per member, in logs and traces only'],
  ['x.flattenRecursive()', 'One field per member of every level; in logs and traces only'],
  ['x.merge(map)', 'Both maps; the other one has precedence'],
  ['x.with(v, e)', 'e with the variable v for x'],
  ['x.exists(v, e)', 'Whether e is true for an element v'],
  ['x.all(v, e)', 'Whether e is true for all elements v'],
  ['x.exists_one(v, e)', 'Whether e is true for exactly one element v'],
  ['x.existsOne(v, e)', 'Whether e is true for exactly one element v'],
  ['x.filter(v, e)', 'Elements v for which e is true'],
  ['x.map(v, e)', 'e of each element v'],
  ['x.transformList(i, v, e)', 'List of e for each index or key i and value v'],
  ['x.transformMap(k, v, e)', 'Map with the values e'],
  ['x.mapValues(v, e)', 'Map with the values e'],
  ['x.filterKeys(k, e)', 'Members whose key k fulfils e'],
  ['x.redacted()', 'Headers without credentials'],
  ['x.raw()', 'Headers with all values as lists'],
  ['x.cookie(name)', 'Value of a cookie, of headers'],
  ['x.query(name)', 'List of the values of a query parameter, of a URI'],
  ['x.addQuery(name, value)', 'URI with another query parameter'],
  ['x.setQuery(name, value)', 'URI with a query parameter replaced'],
  ...['Date', 'DayOfMonth', 'DayOfWeek', 'DayOfYear', 'FullYear', 'Hours', 'Milliseconds', 'Minutes', 'Month', 'Seconds'].map(
    (part) => [`x.get${part}(zone)`, 'Part of a timestamp in a time zone (default UTC), or of a duration'] as const,
  ),
]

/** All variables, in the order of the documentation. */
export const variableDocs: readonly VariableDoc[] = variableRows.map(([name, type, description]) => ({
  name,
  type,
  description,
  phases: phasesOf(name.split('.')[0] ?? ''),
}))

/** All functions, macros and methods. */
export const functionDocs: readonly FunctionDoc[] = functionRows.map(([signature, description]) => {
  const isMethod = signature.startsWith('x.')
  return { name: signature.slice(isMethod ? 2 : 0, signature.indexOf('(')), isMethod, signature, description }
})
