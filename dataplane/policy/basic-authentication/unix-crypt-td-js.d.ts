declare module 'unix-crypt-td-js' {
  /** crypt(3) with DES: the 13 characters for the bytes of a password (the first 8 count) and a hash whose first 2 characters are the salt. */
  export default function crypt(password: readonly number[], salt: string): string
}
