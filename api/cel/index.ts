export { Cidr, clientNetwork, Ip } from './address.ts'
export { functionDocs, variableDocs } from './catalog.ts'
export { typeOf } from './convert.ts'
export { diagnose, formatDiagnostic } from './diagnostic.ts'
export type { Diagnostic } from './diagnostic.ts'
export { anywhere, environments } from './environment.ts'
export type { Entropy, Environment, Phase } from './environment.ts'
export { CelError, isAbsence } from './error.ts'
export type { CelErrorCode } from './error.ts'
export { HeaderView } from './headers.ts'
export type { HeaderSource } from './headers.ts'
export { parseInAdvance } from './functions/encoders.ts'
export { Flattened, toHost, toJsonText } from './host.ts'
export { fromJson, parseStored } from './json.ts'
export type { ResultKind } from './kind.ts'
export {
  evalBody,
  evalBool,
  evalCondition,
  evalDenial,
  evalDurationMs,
  evalHost,
  evalJson,
  evalKey,
  evalNumber,
  evalStored,
  evalString,
  evalTimestampMs,
} from './outcome.ts'
export { compile, compilePermissive, findSyntaxProblem, findUnstable, isParseError, readsMember } from './program.ts'
export type { CelParseError, PermissiveProgram, Program } from './program.ts'
export { Duration, Timestamp } from './time.ts'
export { UriText } from './uri.ts'
export { Double, HostMap, HostText, Secret, Uint } from './values.ts'
export type { Stored, Value } from './values.ts'
