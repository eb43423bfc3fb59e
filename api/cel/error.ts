import { Special } from './special.ts'

/**
 * Cause of a failed evaluation. `default()` replaces the results of `no_such_key`, `undeclared` and `absent_in_loop`. `unreadable`: the value exists, and
 * it cannot be read unambiguously.
 */
export type CelErrorCode =
  | 'no_such_key'
  | 'undeclared'
  | 'out_of_range'
  | 'absent_in_loop'
  | 'unreadable'
  | 'no_such_overload'
  | 'invalid_argument'
  | 'overflow'
  | 'divide_by_zero'
  | 'budget_exceeded'
  | 'failed'
  | 'invalid'
  | 'internal'

/**
 * A failed evaluation, as a value. Created when an expression is compiled, not when it is evaluated, so its text can quote the
 * expression but cannot contain data of a request.
 */
export class CelError extends Special {
  readonly code: CelErrorCode
  readonly message: string
  /** Offset into the expression, if known. */
  readonly offset: number | undefined

  constructor(code: CelErrorCode, message: string, offset?: number) {
    super()
    this.code = code
    this.message = message
    this.offset = offset
  }

  override toString(): string {
    return this.message
  }
}

// Errors that functions return; the call adds its position.
export const overflow = new CelError('overflow', 'the result is out of range')
export const divideByZero = new CelError('divide_by_zero', 'division by zero')
export const badArgument = new CelError('invalid_argument', 'invalid argument')
export const outOfRange = new CelError('out_of_range', 'index out of range')
export const noSuchKey = new CelError('no_such_key', 'no such key')
export const emptyText = new CelError('no_such_key', 'the text is empty')
export const repeatedCookie = new CelError('unreadable', 'the cookie is repeated with another value; read it with request.headers.raw().cookie')
export const repeatedHeader = new CelError('unreadable', 'the header is repeated; read it with join(), raw() or split()')
export const badJson = new CelError('unreadable', 'not JSON, over a limit, or an object repeats a name')
export const badKey = new CelError('no_such_overload', 'maps have keys of type string, bool, int or uint')
export const duplicateKey = new CelError('invalid_argument', 'the map repeats a key')
export const noEntropy = new CelError('failed', 'no randomness is available here')
export const budgetExceeded = new CelError('budget_exceeded', 'the expression needs too many steps')
export const internalError = new CelError('internal', 'evaluation failed')

/** Whether the evaluation failed only because a value is absent. Every other failure can be caused by what a client sends, to evade a rule. */
export function isAbsence({ code }: CelError): boolean {
  return code === 'no_such_key' || code === 'undeclared' || code === 'out_of_range'
}

/** Errors are created when an expression is compiled, so there are few. */
const loopErrors = new WeakMap<CelError, CelError>()

/**
 * The error of a loop that ends because its body fails for one element. An element without a value does not make the whole absent: a client could add
 * one, and a rule that denies would be false.
 */
export function inLoop(error: CelError): CelError {
  if (!isAbsence(error)) return error
  let found = loopErrors.get(error)
  if (found === undefined) loopErrors.set(error, (found = new CelError('absent_in_loop', `${error.message}, for an element of a loop`, error.offset)))
  return found
}

/**
 * The error of operands that fail both. An absent value counts as false for rules that deny (traffic.md §8.6): `or` with one fails as its other
 * operand does, and `and` with one is absent.
 */
export function combineErrors(isOr: boolean, first: CelError | undefined, second: CelError): CelError {
  return first === undefined || (isAbsence(first) === isOr && isAbsence(second) !== isOr) ? second : first
}
