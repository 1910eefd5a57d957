"""Kubernetes' own programs and their certificates, parameter by parameter: what is said of each, and what is seen of it.

    leaves      two generations of a CA, and leaves of them for servers and clients
    folder      the files of one program, swapped as a kubelet or as kubeadm does it
    tap         a TLS server between a program and what it calls: it sees the client's leaf, and shows a leaf of either CA
    beside      a program beside the cluster's own, with the manifest by which the product is asked about it
    objects     what their API and the servers behind taps have
    planes      API servers, controller managers, scheduler, etcd and CoreDNS as such programs
    nodes       the cluster's own: kubelets, kube-proxy, and what kubeadm renews
    row         one line of the table: what is swapped, and how one sees that it is in use
    predict     what the product says of a row
    run         all rows side by side, and when each was taken up
    result      the figures that docs/control-plane-rows.md is made of
"""
