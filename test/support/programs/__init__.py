"""Real programs outside of a cluster, run as a pod template describes them, and seen from outside by handshakes.

    volumes     a Secret's files as the kubelet writes them
    sandbox     a container's process: mounts, user, network; no image and no engine
    material    generations of a CA, with a leaf for the program, for its clients and for servers that it calls
    handshake   which leaf a server shows, and whose client certificates it accepts
    peer        a server that the program calls: which leaf it presents, and whom it trusts
    servers     nginx, PostgreSQL and so on: pod template, configuration, and where to look
    observe     when new files are taken up: by itself, by a trigger, by a restart; and whether that is what was said
"""
