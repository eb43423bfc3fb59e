/** `proxyctl plugin build` bundles the file as text. */
declare module '*.csv' {
  const text: string
  export default text
}
